"""Fetch an engine's metrics page once."""

import asyncio
from dataclasses import dataclass, field
from typing import Final

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from inferencecache.events.engine_metrics import Sample

_PAGE_BYTES_MAX: Final = 8 * 1024 * 1024
_PIECE_BYTES: Final = 65_536
_OK: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What came of fetching.

    Attributes:
        samples: The series of the page.
        error: Why there is no page; empty if there is one.
    """

    samples: list[Sample] = field(default_factory=list)
    error: str = ""


async def fetch_page(url: str, timeout_s: float) -> Page:
    """Return the page at *url*; a page that is cut off counts as far as it goes.

    Args:
        url: The page.
        timeout_s: Longest wait in seconds.
    """
    try:
        async with (
            asyncio.timeout(timeout_s),
            aiohttp.ClientSession() as session,
            session.get(url) as answer,
        ):
            if answer.status != _OK:
                return Page(error=f"HTTP status {answer.status}")
            body = b""
            async for piece in answer.content.iter_chunked(_PIECE_BYTES):
                body += piece
                if len(body) > _PAGE_BYTES_MAX:
                    break
    except TimeoutError:
        return Page(error=f"no answer within {timeout_s:g} s")
    except (aiohttp.ClientError, ValueError, OSError) as error:
        return Page(error=" ".join(str(error).split()) or type(error).__name__)
    return Page(samples=_parse(body.decode("utf-8", "replace")))


def _parse(text: str) -> list[Sample]:
    samples: list[Sample] = []
    try:
        for family in text_string_to_metric_families(text):
            samples += [
                Sample(name=one.name, value=one.value, labels=one.labels, kind=family.type)
                for one in family.samples
            ]
    except ValueError:  # the line where the page is cut, or no page of metrics at all
        return samples
    return samples
