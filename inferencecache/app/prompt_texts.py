"""The tokenizers for prompt texts of lookups, from the directory that is set."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

from inferencecache.clock import Clock
from inferencecache.errors import ConfigError
from inferencecache.settings.lookup import LookupSettings
from inferencecache.settings.picker_prompt import PickerPromptSettings
from inferencecache.transport.structured_log import EventLog
from inferencecache.transport.tokenize_guard import WorkFailure
from inferencecache.transport.tokenize_loading import load_guarded, load_limits
from inferencecache.transport.tokenize_models import ModelTokenizers, model_places

if TYPE_CHECKING:
    from inferencecache.transport.tokenize_local import LocalTokenizer

_FLAG: Final = "tokenizer-models-dir"


def model_tokenizers(
    lookup: LookupSettings, prompt: PickerPromptSettings, clock: Clock, log: EventLog
) -> ModelTokenizers | None:
    """Return the tokenizers of all models, None if no directory is set.

    A model whose files cannot be used is told of and left out.

    Raises:
        ConfigError: The directory cannot be read, or the packages for tokenizers are missing.
    """
    directory = lookup.tokenizer_models_dir
    if not directory:
        return None
    limits = load_limits(prompt, clock)
    tokenizers: dict[str, LocalTokenizer] = {}
    try:
        for name, place in model_places(Path(directory)):
            loaded = load_guarded(place, limits)
            if not isinstance(loaded, WorkFailure):
                tokenizers[name] = loaded
                log.info("tokenizer_loaded", model=name)
                continue
            if isinstance(loaded.error, ImportError):
                raise ConfigError(
                    field=_FLAG, value=directory, allowed=f"no value while {loaded.words}"
                )
            log.warning("tokenizer_not_loaded", model=name, error=loaded.words)
    except OSError as error:
        raise ConfigError(
            field=_FLAG, value=directory, allowed=f"a directory that can be read: {error.strerror}"
        ) from error
    return ModelTokenizers(
        tokenizers, ThreadPoolExecutor(lookup.tokenize_threads_max, "prompt-text")
    )
