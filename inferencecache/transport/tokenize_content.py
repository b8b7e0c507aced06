"""What stands in the files of a tokenizer, read once, so that all is made of the same."""

from hashlib import sha256
from pathlib import Path
from typing import Final

from inferencecache.transport.read_file import read_plain_file
from inferencecache.transport.tokenize_files import TokenizerPlace

_LENGTH_BYTES: Final = 8


class TokenizerContent:
    """The content of each file of a place, or what came of reading it.

    Args:
        place: Where the files are.
        bytes_max: Largest file.
    """

    __slots__ = ("_found",)

    def __init__(self, place: TokenizerPlace, bytes_max: int) -> None:
        self._found = {path: _read(path, bytes_max) for path in place.files}

    def read(self, path: Path) -> bytes:
        """Return what stood in a file.

        Raises:
            OSError: It could not be read, or is too large.
            ValueError: The path cannot be one.
        """
        found = self._found[str(path)]
        if isinstance(found, Exception):
            raise found
        return found

    @property
    def digest(self) -> bytes:
        """The same for the same content of the same files.

        Complexity: O(n), without the interpreter where there is much of it.
        """
        digest = sha256()
        for path, found in self._found.items():
            content = repr(found).encode() if isinstance(found, Exception) else found
            kind = b"f" if isinstance(found, Exception) else b"r"
            for part in (path.encode(errors="surrogatepass"), kind, content):
                digest.update(len(part).to_bytes(_LENGTH_BYTES))
                digest.update(part)
        return digest.digest()


def _read(path: str, bytes_max: int) -> bytes | OSError | ValueError:
    try:
        return read_plain_file(path, bytes_max)
    except (OSError, ValueError) as error:
        return error
