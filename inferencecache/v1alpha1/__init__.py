"""Generated from ``proto/inferencecache/v1alpha1``; never edited."""
