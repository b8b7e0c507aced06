"""Fetch an engine's metrics page once."""

from dataclasses import dataclass, field

import aiohttp

from inferencecache.events.engine_metrics import Sample
from inferencecache.transport.engine_scrape import PageScraper, ScrapeError, parse_page


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
    async with aiohttp.ClientSession() as session:
        try:
            text = await PageScraper(url, session, timeout_s).fetch()
        except ScrapeError as error:
            return Page(error=error.reason)
    return Page(samples=parse_page(text))
