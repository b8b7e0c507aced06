"""Generated from ``proto/inferencecache/kinference``; never edited."""
