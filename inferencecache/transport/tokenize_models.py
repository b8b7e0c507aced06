"""Tokenizers for prompt texts of lookups: all of a directory, loaded when the server starts.

A lookup names a model. Its name is looked up among those that were loaded and never becomes a path.
"""

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import TYPE_CHECKING, Final

from inferencecache.clock import NS_PER_S
from inferencecache.picker.fleet import EngineKind
from inferencecache.picker.prompt.conversation import Conversation, Message
from inferencecache.transport.giving_way import giving_way
from inferencecache.transport.tokenize_files import TokenizerPlace
from inferencecache.transport.tokenize_guard import WorkFailure, guarded

if TYPE_CHECKING:
    from inferencecache.transport.tokenize_local import LocalTokenizer

_DIRECTORIES_MAX: Final = 10_000

TokenIds = Sequence[int]


class PromptWork:
    """One prompt on its way to token ids.

    Args:
        future: Ends with them, or with what went wrong.
    """

    __slots__ = ("_future",)

    def __init__(self, future: "Future[TokenIds | WorkFailure]") -> None:
        self._future = future

    def is_done(self) -> bool:
        """Return whether the work has ended, well or not."""
        return self._future.done()

    def token_ids(self) -> TokenIds:
        """Return the tokens once done; empty when it failed."""
        if self._future.cancelled():
            return ()
        result = self._future.result()
        return () if isinstance(result, WorkFailure) else result

    async def wait(self, timeout_ns: int) -> None:
        """Return when the work has ended, or after *timeout_ns*."""
        await asyncio.wait({asyncio.wrap_future(self._future)}, timeout=timeout_ns / NS_PER_S)


class ModelTokenizers:
    """A :class:`~inferencecache.service.tokenizer.Tokenizer` of several models.

    Args:
        tokenizers: By the model's name.
        threads: Do the work.
    """

    def __init__(self, tokenizers: Mapping[str, "LocalTokenizer"], threads: Executor) -> None:
        self._tokenizers = tokenizers
        self._threads = threads

    def start(self, model_id: str, prompt_text: str) -> PromptWork | None:
        """Begin to tokenize *prompt_text* as one turn of a user, with the head of an answer."""
        tokenizer = self._tokenizers.get(model_id)
        if tokenizer is None:
            return None
        turn = Conversation(messages=(Message(role="user", content=prompt_text),))

        def tokens() -> TokenIds:
            return tokenizer.tokens(turn, EngineKind.VLLM).token_ids

        return PromptWork(self._threads.submit(giving_way, lambda: guarded(tokens)))

    def stop(self) -> None:
        """Begin nothing any more."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def model_places(root: Path) -> Iterator[tuple[str, TokenizerPlace]]:
    """Yield each model below *root*: its name, the path from there, and where its tokenizer is.

    A directory with a ``tokenizer.json`` is a model, and what is below it belongs to it.

    Raises:
        OSError: There is no such directory, or it cannot be read.
    """
    seen: set[str] = set()
    waiting = [root]
    while waiting and len(seen) < _DIRECTORIES_MAX:
        directory = waiting.pop()
        real = os.path.realpath(directory)
        if real in seen:
            continue
        seen.add(real)
        place = TokenizerPlace(str(directory), "")
        if directory != root and place.tokenizer_file.exists():
            yield directory.relative_to(root).as_posix(), place
            continue
        waiting += (
            child
            for child in sorted(directory.iterdir(), reverse=True)
            if child.is_dir() and not child.name.startswith(".")
        )
