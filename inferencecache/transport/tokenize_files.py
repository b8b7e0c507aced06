"""Where a tokenizer's files are, and what of them is read."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from inferencecache.picker.fleet import WorkerSet

Now = Callable[[], datetime]
"""Returns the date and time of day where the engines are believed to be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadLimits:
    """What may be loaded, and how.

    Attributes:
        file_bytes_max: Largest file.
        characters_max: Most that a template may write.
        steps_max: Most turns of loops and calls that a template may take to write a prompt.
        now: For templates that write the date.
    """

    file_bytes_max: int
    characters_max: int
    steps_max: int
    now: Now


class TokenizerPlace(NamedTuple):
    """What a tokenizer is loaded from.

    Attributes:
        directory: Where its files are.
        chat_template: A file with its chat template, empty for the directory's own.
    """

    directory: str
    chat_template: str

    @property
    def tokenizer_file(self) -> Path:
        """The tokenizer."""
        return Path(self.directory, "tokenizer.json")

    @property
    def config_file(self) -> Path:
        """Its special tokens, and usually its template."""
        return Path(self.directory, "tokenizer_config.json")

    @property
    def directory_template(self) -> Path:
        """A template that stands before the one in the config."""
        return Path(self.directory, "chat_template.jinja")

    @property
    def template_file(self) -> Path | None:
        """A template that stands before all others, if there is one."""
        return Path(self.chat_template) if self.chat_template else None

    @property
    def files(self) -> list[str]:
        """All of them."""
        found = (self.tokenizer_file, self.config_file, self.directory_template, self.template_file)
        return [str(path) for path in found if path is not None]


def place_of(worker_set: WorkerSet) -> TokenizerPlace:
    """Return where the tokenizer of *worker_set* is; it has one."""
    return TokenizerPlace(worker_set.tokenizer, worker_set.chat_template)
