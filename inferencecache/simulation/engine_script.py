"""Scripts for the fake engine: a YAML list, or one JSON object per line, of steps.

::

    - {do: serve, start: 1, count: 64}
    - {do: serve, start: 1, count: 32, then: [7, 8, 9], rank: 1}
    - {do: skip}
    - {do: remove, start: 1, count: 64, first_block: 2}
    - {do: restart}

A prompt is ``count`` tokens from ``start`` upwards, followed by the tokens in ``then``.
"""

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
import yaml

from inferencecache.errors import ConfigError
from inferencecache.simulation.engine_life import GPU, EnginePrompt

TOKENS_MAX: Final = 2**24
"""Most tokens of one prompt."""

Count = Annotated[int, msgspec.Meta(ge=0, le=TOKENS_MAX)]
Token = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]
Rank = Annotated[int, msgspec.Meta(ge=0, le=1_023)]


class _Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="do"):
    """What every step can say.

    Attributes:
        rank: Which data-parallel rank it happens on.
        lost: Whether the message is numbered and kept for replay, but not sent.
    """

    rank: Rank = 0
    lost: bool = False


class PromptStep(_Step, frozen=True, kw_only=True):
    """A step about the blocks of one prompt."""

    start: Token = 0
    count: Count = 0
    then: list[Token] = []
    lora_id: int | None = None
    lora_name: str = ""
    salt: str = ""

    @property
    def prompt(self) -> EnginePrompt:
        """The prompt."""
        return EnginePrompt(
            tokens=[*range(self.start, self.start + self.count), *self.then],
            lora_id=self.lora_id,
            lora_name=self.lora_name,
            salt=self.salt,
        )


class Serve(PromptStep, frozen=True, kw_only=True, tag="serve"):
    """Compute a prompt: evict and store what that takes."""


class Copy(PromptStep, frozen=True, kw_only=True, tag="copy"):
    """Store a prompt's held blocks a second time."""


class Offload(PromptStep, frozen=True, kw_only=True, tag="offload"):
    """Copy a prompt's held blocks to another medium."""

    medium: str = "CPU"


class Remove(PromptStep, frozen=True, kw_only=True, tag="remove"):
    """Drop one copy of each of a prompt's blocks from a medium."""

    medium: str = GPU
    first_block: Count = 0


class Evict(_Step, frozen=True, kw_only=True, tag="evict"):
    """Drop the least recently used blocks."""

    blocks: Count = 1


class Clear(_Step, frozen=True, kw_only=True, tag="clear"):
    """Drop everything."""


class Skip(_Step, frozen=True, kw_only=True, tag="skip"):
    """Use numbers up that nothing is ever sent under."""

    count: Count = 1


class Duplicate(_Step, frozen=True, kw_only=True, tag="duplicate"):
    """Send the last message again under its number."""


class Restart(_Step, frozen=True, kw_only=True, tag="restart"):
    """Begin another life of the engine, at number 0 with an empty cache."""


class Wait(_Step, frozen=True, kw_only=True, tag="wait"):
    """Do nothing for a while."""

    ms: Annotated[int, msgspec.Meta(ge=0, le=3_600_000)] = 0


Step = Serve | Copy | Offload | Remove | Evict | Clear | Skip | Duplicate | Restart | Wait


def parse_script(text: str, name: str, ranks: int = 1) -> Sequence[Step]:
    """Read a script.

    Args:
        text: YAML, or JSON objects one a line.
        name: What error messages call it.
        ranks: Ranks the engine has.

    Raises:
        ConfigError: It is no list of steps, or a step is wrong; says which.
    """
    documents = _documents(text, name)
    steps = [_step(document, f"{name} step {n}") for n, document in enumerate(documents, 1)]
    for number, step in enumerate(steps, 1):
        if step.rank >= ranks:
            raise ConfigError(
                field="rank",
                value=step.rank,
                allowed=f"below {ranks}, the number of ranks",
                source=f"{name} step {number}",
            )
    return steps


def _documents(text: str, name: str) -> list[object]:
    try:
        if text.lstrip().startswith("{"):
            return [msgspec.json.decode(line) for line in text.splitlines() if line.strip()]
        read = yaml.safe_load(text)
    except (yaml.YAMLError, msgspec.DecodeError, ValueError, RecursionError) as error:
        detail = " ".join(str(error).split())[:200]
        raise ConfigError(field="script", value=name, allowed=f"YAML or JSON ({detail})") from error
    if not isinstance(read, list) or not read:
        raise ConfigError(field="script", value=name, allowed="a list of at least one step")
    return read


def _step(document: object, source: str) -> Step:
    try:
        step: Step = msgspec.convert(document, Step)
    except msgspec.ValidationError as error:
        raise ConfigError(
            field="step", value=document, allowed=f"a known step ({error})", source=source
        ) from error
    last = step.start + step.count if isinstance(step, PromptStep) else 0
    if last > 2**32:
        raise ConfigError(
            field="count", value=document, allowed="tokens below 2**32", source=source
        )
    return step
