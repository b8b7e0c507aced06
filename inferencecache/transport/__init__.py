"""Sockets and wire formats: the only package that sees grpc, aiohttp, protobuf, prometheus."""
