"""Benchmarks: every target of the index and the server, measured, with yardsticks beside it.

``python -m benchmarks`` prints the whole table; ``benchmarks/README.md`` tells the rest.
"""
