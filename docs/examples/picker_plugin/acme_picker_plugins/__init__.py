"""Plugins of Acme for the picker of inferencecache."""
