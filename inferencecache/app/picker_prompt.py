"""The picker's reader of prompts, with the threads, connections and secrets that it needs."""

import secrets
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import aiohttp

from inferencecache.clock import NS_PER_S, Clock
from inferencecache.picker.fleet import WorkerSet
from inferencecache.settings.picker_choice import PickerChoiceSettings
from inferencecache.settings.picker_prompt import PickerPromptSettings
from inferencecache.transport.metric_cells import Family
from inferencecache.transport.structured_log import EventLog
from inferencecache.transport.tokenize_engine import EngineTokenizer
from inferencecache.transport.tokenize_reader import PromptReaderParts, TokenizingReader
from inferencecache.transport.tokenize_shelf import TokenizerShelf
from inferencecache.transport.tokenize_watch import TokenizeWatch
from inferencecache.transport.work_threads import WorkThreads

_SECRET_BYTES: Final = 32
_BYTES_PER_TOKEN: Final = PickerChoiceSettings().bytes_per_token


class PickerPrompts:
    """Turns the prompts of one server into blocks; made on the event loop that it works on.

    Args:
        settings: Limits.
        clock: The time.
        log: Told of tokenizers and of failures.
        bytes_per_token: Of texts whose tokens nobody counts.

    Attributes:
        reader: Reads prompts.
    """

    def __init__(
        self,
        settings: PickerPromptSettings,
        clock: Clock,
        log: EventLog,
        bytes_per_token: int = _BYTES_PER_TOKEN,
    ) -> None:
        self._threads = WorkThreads(settings.threads_max, "tokenize")
        self._loading = ThreadPoolExecutor(settings.threads_max, "load-tokenizer")
        self._session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
        self.reader = TokenizingReader(
            PromptReaderParts(
                settings=settings,
                bytes_per_token=bytes_per_token,
                clock=clock,
                shelf=TokenizerShelf(settings, clock, log, self._loading),
                engines=EngineTokenizer(
                    self._session,
                    settings.timeout_ns / NS_PER_S,
                    settings.answer_bytes_max,
                    bytes_per_token,
                ),
                threads=self._threads,
                watch=TokenizeWatch(log, clock, settings.log_interval_ns),
                secret=secrets.token_bytes(_SECRET_BYTES),
            )
        )

    def adopt(self, worker_sets: Iterable[WorkerSet]) -> None:
        """Load what these need, and let go of all else."""
        self.reader.adopt(worker_sets)

    def families(self) -> list[Family]:
        """Return a copy of all numbers."""
        return self.reader.families()

    async def stop(self) -> None:
        """Let go of everything; a tokenization that runs in a thread is not waited for."""
        await self.reader.stop()
        await self._session.close()
        self._threads.stop()
        self._loading.shutdown(wait=False, cancel_futures=True)
