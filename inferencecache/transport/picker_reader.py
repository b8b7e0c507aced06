"""Read bodies: small ones here, large ones in a process beside the server.

A thread would not do: whoever reads JSON holds the interpreter until it is done.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Final

from inferencecache.picker.bodies import Rope
from inferencecache.picker.request import (
    InferenceRequest,
    LaboriousBodyError,
    ParsedBody,
    parse_body,
    read_body,
)
from inferencecache.settings.picker import PickerParseSettings

_KEYS_QUICK: Final = 1_000
"""Finding the level of this many ``model`` keys takes a few milliseconds."""


class BodyReader:
    """Parses bodies without keeping anybody waiting.

    Args:
        settings: What is too deep, too long, or too much to be read here.
    """

    def __init__(self, settings: PickerParseSettings) -> None:
        self._settings = settings
        self._turn = asyncio.Semaphore(settings.processes_max)
        self._processes: ProcessPoolExecutor | None = None

    async def read(self, content: Rope, *, may_lack_model: bool = False) -> ParsedBody:
        """Return what *content* says.

        Args:
            content: A body.
            may_lack_model: Whether it may name no model.

        Raises:
            BadBodyError: It is no inference request.
            BrokenProcessPool: Two processes that read it died; the next body gets a new one.
        """
        if content.length <= self._settings.inline_bytes_max:
            with suppress(LaboriousBodyError):
                return read_body(
                    content.join(), self._settings, _KEYS_QUICK, may_lack_model=may_lack_model
                )
        async with self._turn:
            request = await self._read_elsewhere(content.join(), may_lack_model=may_lack_model)
        return ParsedBody(request, None)

    def close(self) -> None:
        """End the processes."""
        if self._processes is not None:
            self._processes.shutdown(wait=False, cancel_futures=True)
            self._processes = None

    async def _read_elsewhere(self, data: bytes, *, may_lack_model: bool) -> InferenceRequest:
        """Have a process read *data*; if that dies of something else, another one."""
        parse = partial(parse_body, data, self._settings, may_lack_model=may_lack_model)
        try:
            return await self._run(parse)
        except BrokenProcessPool:
            return await self._run(parse)

    async def _run(self, parse: Callable[[], InferenceRequest]) -> InferenceRequest:
        if self._processes is None:
            self._processes = ProcessPoolExecutor(
                self._settings.processes_max,
                mp_context=get_context("spawn"),
                initializer=_serve_parent,
            )
        processes = self._processes
        try:
            return await asyncio.get_running_loop().run_in_executor(processes, parse)
        except BrokenProcessPool:
            if self._processes is processes:  # nobody who met the same has new ones yet
                self.close()
            raise


def _serve_parent() -> None:
    """Leave interrupts to the parent, and end when it does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
    os._exit(0)
