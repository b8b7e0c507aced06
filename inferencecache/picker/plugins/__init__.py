"""The product's own plugins, one module each or one per family; :mod:`builtin` lists them."""

from inferencecache.picker.plugins.builtin import BUILTIN_TYPES

__all__ = ["BUILTIN_TYPES"]
