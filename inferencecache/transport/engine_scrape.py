"""Read an engine's metrics page."""

from collections import deque
from typing import Final

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from inferencecache.errors import InferenceCacheError
from inferencecache.events.engine_metrics import Sample

_TIMEOUT_S: Final = 5.0
_PAGE_BYTES_MAX: Final = 16 * 1024 * 1024
_OK: Final = 200
_MEANINGS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (aiohttp.InvalidURL, "this is no URL"),
    (aiohttp.NonHttpUrlClientError, "this is no URL of HTTP"),
    (aiohttp.ClientConnectorDNSError, "the host name has no address"),
    (aiohttp.ClientResponseError, "what listens there does not speak HTTP"),
    (aiohttp.ServerDisconnectedError, "the connection is closed without an answer"),
)


class ScrapeError(InferenceCacheError):
    """A page could not be had.

    Args:
        url: Where it was looked for.
        reason: What went wrong, in one line.
    """

    def __init__(self, *, url: str, reason: str) -> None:
        super().__init__(f"no metrics page at {url}: {reason}")
        self.url = url
        self.reason = reason


class PageScraper:
    """Fetches one page again and again; parsing it may take long and is the caller's to place.

    Args:
        url: Where the page is.
        session: Shared by all scrapers of a process.
        timeout_s: Longest wait in seconds.
        bytes_max: How much of the page is read.
    """

    def __init__(
        self,
        url: str,
        session: aiohttp.ClientSession,
        timeout_s: float = _TIMEOUT_S,
        bytes_max: int = _PAGE_BYTES_MAX,
    ) -> None:
        self._url = url
        self._session = session
        self._timeout_s = timeout_s
        self._bytes_max = bytes_max

    async def fetch(self) -> str:
        """Return the page, of one that was cut off what came before the cut.

        Raises:
            ScrapeError: There is no page.
        """
        timeout = aiohttp.ClientTimeout(total=self._timeout_s)
        try:
            async with self._session.get(self._url, timeout=timeout) as answer:
                if answer.status != _OK:
                    raise ScrapeError(url=self._url, reason=f"HTTP status {answer.status}")
                body = await _read(answer, self._bytes_max)
        except (aiohttp.ClientError, TimeoutError, ValueError, OSError) as error:
            raise ScrapeError(url=self._url, reason=self._reason(error)) from error
        return body.decode("utf-8", "replace")

    def _reason(self, error: Exception) -> str:
        """Return what *error* means to somebody who gave a URL."""
        for kind, meaning in _MEANINGS:
            if isinstance(error, kind):
                return meaning
        if isinstance(error, TimeoutError):
            return f"no answer within {self._timeout_s:g} s"
        if isinstance(error, aiohttp.ClientConnectorError):
            if isinstance(error.os_error, ConnectionRefusedError):
                return "the connection is refused, so nothing listens there"
            return error.os_error.strerror or str(error.os_error)
        return f"{type(error).__name__} {error}".strip()


async def _read(answer: aiohttp.ClientResponse, bytes_max: int) -> bytes:
    """Return the body, or as much of it as is read; what came before a break counts."""
    parts: list[bytes] = []
    size = 0
    try:
        async for part in answer.content.iter_any():
            parts.append(part)
            size += len(part)
            if size >= bytes_max:
                break
    except aiohttp.ClientPayloadError:
        pass
    return b"".join(parts)[:bytes_max]


def parse_page(text: str) -> list[Sample]:
    """Return the series of a page in the text format.

    A last line without its end was cut off and is left out. Parsing stops at a line that cannot be
    read; what stands before it counts.
    """
    whole = text if text.endswith("\n") else text.rpartition("\n")[0]
    samples: list[Sample] = []
    try:
        for family in text_string_to_metric_families(whole):
            samples.extend(
                Sample(
                    name=sample.name,
                    value=sample.value,
                    labels=dict(sample.labels),
                    kind=family.type,
                )
                for sample in family.samples
            )
    except (ValueError, IndexError, KeyError):
        return samples
    return samples


def only_series(text: str, names: frozenset[str], series_max: int | None = None) -> str:
    """Return the lines of a page that are about *names*; the rest is long and costs to parse.

    Args:
        text: The page.
        names: Of its series.
        series_max: Of each name only so many are kept, the last of them: pages name those first
            that they have had for longest. None keeps all.

    Complexity: O(length of the page).
    """
    types: dict[str, str] = {}
    samples: dict[str, deque[str]] = {}
    for line in text.splitlines(keepends=True):
        name = _series_of(line)
        if name not in names:
            continue
        if line.startswith("#"):
            types[name] = line
        samples.setdefault(name, deque(maxlen=series_max))
        if not line.startswith("#"):
            samples[name].append(line)
    return "".join(line for name in samples for line in (types.get(name, ""), *samples[name]))


def _series_of(line: str) -> str:
    """Return whose line it is: a sample's, or that of a ``# TYPE`` in front of it."""
    if line.startswith("#"):
        words = line.split(maxsplit=3)
        return words[2] if words[:2] == ["#", "TYPE"] and words[2:] else ""
    return line.partition("{")[0].partition(" ")[0]
