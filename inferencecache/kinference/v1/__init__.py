"""Generated from ``proto/inferencecache/kinference/v1``; never edited."""
