"""Give memory that is free inside the process back to the system.

The C library keeps what large objects leave behind between small ones that live on; the process
then looks as large as it ever was.
"""

import ctypes


def give_back() -> None:
    """Return free pages to the system, where the C library can; waits without the interpreter."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
