"""Trust the authorities in a file, and nobody else."""

import ssl


def trusting(authorities: bytes) -> ssl.SSLContext:
    """Return what a client checks servers with: by these authorities only.

    Args:
        authorities: Their certificates, PEM, with anything around them.

    Raises:
        OSError: There is none that can be read.
        ValueError: There is nothing at all.
    """
    # Bundles carry comments in any language; what counts is ASCII.
    text = authorities.decode("ascii", "ignore")
    if not text.strip():  # for which Python would trust the authorities of the system instead
        raise ValueError("an empty file names no authority")
    return ssl.create_default_context(cadata=text)
