"""Load tokenizers without needing their packages before there is one to load."""

from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, Final

from inferencecache.clock import NS_PER_S, Clock
from inferencecache.settings.picker_prompt import PickerPromptSettings
from inferencecache.transport.tokenize_content import TokenizerContent
from inferencecache.transport.tokenize_files import LoadLimits, TokenizerPlace
from inferencecache.transport.tokenize_guard import WorkFailure, guarded

if TYPE_CHECKING:
    from inferencecache.transport.tokenize_local import LocalTokenizer

_LOADER: Final = "inferencecache.transport.tokenize_local"
_EXTRA: Final = "the packages of the extra 'tokenizers' are not installed"
_WORDS_MAX: Final = 200


def load_limits(settings: PickerPromptSettings, clock: Clock) -> LoadLimits:
    """Return what may be loaded, and how."""
    return LoadLimits(
        file_bytes_max=settings.file_bytes_max,
        characters_max=settings.rendered_characters_max,
        steps_max=settings.template_steps_max,
        now=lambda: engines_time(clock),
    )


def engines_time(clock: Clock) -> datetime:
    """Return the date and time of day where the engines are believed to be."""
    return datetime.fromtimestamp(clock.now_ns() / NS_PER_S).astimezone()


def load_guarded(
    place: TokenizerPlace, limits: LoadLimits, content: TokenizerContent | None = None
) -> "LocalTokenizer | WorkFailure":
    """Return the tokenizer at *place*, or why there is none.

    Args:
        place: Where it is.
        limits: How large it may be.
        content: Of its files, where they have been read.
    """

    def load() -> "LocalTokenizer":
        loaded: LocalTokenizer = import_module(_LOADER).load_tokenizer(place, limits, content)
        return loaded

    loaded = guarded(load)
    if isinstance(loaded, WorkFailure):
        return WorkFailure(loaded.error, _meaning(loaded.error))
    return loaded


def _meaning(error: BaseException) -> str:
    """Return in one line why a tokenizer was not loaded; files hold no prompts."""
    if isinstance(error, ImportError):
        return _EXTRA
    if isinstance(error, OSError):
        where = f": {error.filename}" if error.filename else ""
        return f"{error.strerror or type(error).__name__}{where}"
    return f"{type(error).__name__}: {str(error)[:_WORDS_MAX]}"
