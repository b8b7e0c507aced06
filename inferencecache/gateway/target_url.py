"""The URL that a request is sent to."""


def target_url(base_url: str, path: str, client_path: str, client_query: str) -> str:
    """Return base URL and path as one.

    Args:
        base_url: Scheme, host, and what stands in front of every path.
        path: Takes the place of the client's path and query; empty keeps them.
        client_path: As the client wrote it, beginning with a slash.
        client_query: As the client wrote it, without the question mark.

    >>> target_url("https://a/prefix/", "/serve?v=1", "/v1/embeddings", "x=2")
    'https://a/prefix/serve?v=1'
    >>> target_url("https://a/prefix", "", "/v1/embeddings", "x=2")
    'https://a/prefix/v1/embeddings?x=2'
    """
    if not path:
        path = f"{client_path}?{client_query}" if client_query else client_path
    return base_url.rstrip("/") + path
