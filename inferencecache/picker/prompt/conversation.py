"""Prompts as they are before anybody has tokenized them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

import msgspec


@dataclass(frozen=True, slots=True)
class Media:
    """A part of a turn that is no text: a picture, sound, or what nobody here knows.

    Attributes:
        part: As in the body.
    """

    part: object


Parts = tuple[str | Media, ...]
"""What a turn consists of, in order."""

NOTHING: Final[Mapping[str, object]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenIdPrompt:
    """A prompt that comes as token ids.

    Attributes:
        token_ids: As in the body.
    """

    token_ids: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPrompt:
    """A prompt that is one text.

    Attributes:
        text: As in the body.
        adds_special_tokens: Whether the tokenizer puts in what it puts around texts.
    """

    text: str
    adds_special_tokens: bool = True


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One turn; a prompt may have thousands.

    Attributes:
        role: Whose.
        content: One text, or several parts.
        rest: What else a template may look at: calls of tools, names.
    """

    role: str
    content: str | Parts
    rest: Mapping[str, object] = NOTHING

    @property
    def has_media(self) -> bool:
        """Whether something stands in it that is no text."""
        if isinstance(self.content, str):
            return False
        return any(isinstance(part, Media) for part in self.content)

    @property
    def parts(self) -> Parts:
        """The content, one text as one part."""
        return (self.content,) if isinstance(self.content, str) else self.content


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A prompt that a chat template makes of turns.

    Attributes:
        messages: In order.
        tools: What may be called, as chat completions write it; None for nothing.
        tool_choice: Which of them has to be, as in the body; None if that is not said.
        variables: What else the template is given.
        adds_generation_prompt: Whether the answer's head is appended.
        continues_final_message: Whether the answer goes on with the last turn.
        adds_special_tokens: Whether the tokenizer adds its own to what the template wrote.
    """

    messages: tuple[Message, ...]
    tools: tuple[object, ...] | None = None
    tool_choice: object = None
    variables: Mapping[str, object] = field(default_factory=lambda: NOTHING)
    adds_generation_prompt: bool = True
    continues_final_message: bool = False
    adds_special_tokens: bool = False

    @property
    def first_media(self) -> int | None:
        """Number of the first turn in which something stands that is no text."""
        return next((at for at, message in enumerate(self.messages) if message.has_media), None)


Prompt = TokenIdPrompt | TextPrompt | Conversation
"""A prompt that has tokens."""
