"""A model's tokenizer, loaded from its directory.

Only this module and the one for templates need the packages of the extra ``tokenizers``; nobody
imports them before there is a tokenizer to load.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from tokenizers import AddedToken, Tokenizer

from inferencecache.picker.fleet import EngineKind
from inferencecache.picker.prompt.conversation import Conversation, TextPrompt
from inferencecache.picker.prompt.special_tokens import (
    SPACING,
    SpecialTokens,
    any_of,
    pieces_of,
)
from inferencecache.picker.prompt.template_input import (
    as_rendered,
    before_media,
    continued,
    template_variables,
)
from inferencecache.picker.prompt.token_blocks import Tokens
from inferencecache.transport.tokenize_content import TokenizerContent
from inferencecache.transport.tokenize_files import LoadLimits, Now, TokenizerPlace
from inferencecache.transport.tokenize_template import ChatTemplate
from inferencecache.transport.tokenize_turns import TurnsInText

_TOOLS_TEMPLATE: Final = "tool_use"
_DEFAULT_TEMPLATE: Final = "default"
_SAMPLE: Final = " Where a prompt is warm:\n 12 ½ "
_SAMPLES: Final = 8


class NoTemplateError(Exception):
    """A conversation cannot become a prompt: the model has no chat template."""


class NotContinuedError(Exception):
    """A template did not write the turn that the answer shall go on with."""


class Written(NamedTuple):
    """What a template wrote.

    Attributes:
        text: Up to the first picture.
        behind: What stands behind that; None if there is none.
        starts: Where each turn begins in the text, and where the last one ends; empty unless a
            longer conversation goes on from there.
    """

    text: str
    behind: str | None
    starts: Sequence[int]


class LocalTokenizer:
    """Turns prompts into tokens; from any thread.

    Args:
        tokenizer: The model's.
        templates: Its chat templates by name; none if it has none.
        special_tokens: What templates call them, and how they are written.
        now: For templates that write the date.
        adds_bos: Whether every text begins with the token for its beginning.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        templates: Mapping[str, ChatTemplate],
        special_tokens: Mapping[str, object],
        now: Now,
        *,
        adds_bos: bool,
    ) -> None:
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self._tokenizer = tokenizer
        self._templates = templates
        self._special_tokens = special_tokens
        self._special = _safe_special(tokenizer)
        bos = special_tokens.get("bos_token") if adds_bos else None
        self._bos = tokenizer.token_to_id(bos) if isinstance(bos, str) else None
        self._now = now if any(found.tells_date for found in templates.values()) else None

    @property
    def date(self) -> str:
        """The date, if it stands in what this tokenizer's templates write; else empty."""
        return "" if self._now is None else self._now().date().isoformat()

    def tokens(
        self, prompt: TextPrompt | Conversation, engine: EngineKind, steps_max: int | None = None
    ) -> Tokens:
        """Return the tokens of *prompt*.

        Args:
            prompt: What a body asks for.
            engine: Who would tokenize it, since they prepare conversations differently.
            steps_max: Most steps of a template, if fewer than it may take at all.

        Raises:
            NoTemplateError: It is a conversation, and there is no template.
            NotContinuedError: The answer shall go on with a turn that the template left out.
            Exception: Whatever the template or the tokenizer raises.
        """
        if isinstance(prompt, TextPrompt):
            return Tokens(token_ids=self._encode(prompt.text, prompt.adds_special_tokens))
        text, behind, _ = self.written(prompt, engine, steps_max)
        adds = prompt.adds_special_tokens
        return Tokens(
            token_ids=self._encode(text, adds),
            further=None if behind is None else len(self._encode(behind, adds)),
        )

    def written(
        self, conversation: Conversation, engine: EngineKind, steps_max: int | None = None
    ) -> Written:
        """Return what the template writes.

        Args:
            conversation: The prompt.
            engine: Who would tokenize it.
            steps_max: Most steps of the template, if fewer than it may take at all.

        Raises:
            NoTemplateError: There is no template.
            NotContinuedError: The answer shall go on with a turn that the template left out.
            Exception: Whatever the template raises.
        """
        rendered, appended = as_rendered(conversation, engine)
        template = self._template(has_tools=conversation.tools is not None)
        variables = template_variables(rendered, engine, knows_parts=template.knows_parts)
        turns = TurnsInText(variables["messages"]) if template.goes_turn_by_turn else None
        if turns is not None:
            variables["messages"] = turns
        text = template.render({**self._special_tokens, **variables}, steps_max, turns)
        if rendered.continues_final_message:
            text = _continued(text, rendered)
        before, behind = before_media(text + appended)
        is_whole = behind is None and not conversation.continues_final_message
        if turns is None or not is_whole or _has_media(conversation):
            return Written(before, behind, [])
        return Written(before, behind, turns.starts)

    def may_go_on(self, conversation: Conversation, characters: int) -> bool:
        """Return whether further turns can be written without those between it and the first.

        Args:
            conversation: Its first turn, and what is new.
            characters: What was written of those between.
        """
        template = self._template(has_tools=conversation.tools is not None)
        return template.goes_turn_by_turn and characters <= template.characters_max

    def pieces(self, text: str) -> list[str]:
        """Return *text* in pieces whose tokens, one after the other, are its own."""
        return pieces_of(text, self._special)

    def encode(self, texts: list[str]) -> list[list[int]]:
        """Return the tokens of each of *texts*, without any special ones added."""
        return _encoded(self._tokenizer, texts)

    def _encode(self, text: str, adds_special_tokens: bool) -> list[int]:  # noqa: FBT001 - private
        (token_ids,) = _encoded(self._tokenizer, [text], adds_special_tokens=adds_special_tokens)
        if adds_special_tokens and self._bos is not None and token_ids[:1] != [self._bos]:
            return [self._bos, *token_ids]
        return token_ids

    def _template(self, *, has_tools: bool) -> ChatTemplate:
        with_tools = self._templates.get(_TOOLS_TEMPLATE) if has_tools else None
        template = with_tools or self._templates.get(_DEFAULT_TEMPLATE)
        if template is None:
            raise NoTemplateError
        return template


def _has_media(conversation: Conversation) -> bool:
    """Return whether there are pictures, also where the template has written none of them."""
    return conversation.first_media is not None


def _continued(text: str, conversation: Conversation) -> str:
    kept = continued(text, conversation)
    if kept is None:
        raise NotContinuedError
    return kept


def _encoded(
    tokenizer: Tokenizer, texts: list[str], *, adds_special_tokens: bool = False
) -> list[list[int]]:
    # Of the ways to encode, only that for batches lets other threads run meanwhile.
    encoded = tokenizer.encode_batch_fast(texts, add_special_tokens=adds_special_tokens)
    return [encoding.ids for encoding in encoded]


def _safe_special(tokenizer: Tokenizer) -> SpecialTokens | None:
    """Return the tokens at which texts can be taken apart; None if that changes their tokens."""
    added = [
        token for token in tokenizer.get_added_tokens_decoder().values() if not token.normalized
    ]
    if any(map(_reaches_far, added)):
        return None
    pattern = any_of([token.content for token in added])
    marking = frozenset(
        token.content
        for token in added
        if not (token.lstrip or token.rstrip) and token.content == token.content.strip()
    )
    if pattern is None or not marking:
        return None
    special = SpecialTokens(pattern, marking)
    sample = "".join(f"{_SAMPLE}{mark}{_SAMPLE}" for mark in sorted(marking)[:_SAMPLES])
    whole, *pieces = _encoded(tokenizer, [sample, *pieces_of(sample, special, spacing=1)])
    return special if whole == [token for piece in pieces for token in piece] else None


def _reaches_far(token: AddedToken) -> bool:
    """Return whether a special token depends on what is around it, or spans a whole piece."""
    return token.single_word or len(token.content) > SPACING


def load_tokenizer(
    place: TokenizerPlace, limits: LoadLimits, content: TokenizerContent | None = None
) -> LocalTokenizer:
    """Return the tokenizer at *place*.

    Args:
        place: Where it is.
        limits: How large it may be.
        content: Of its files, where they have been read.

    Raises:
        OSError: A file cannot be read, or is too large.
        Exception: It is not what it should be.
    """
    read = _Reader(content or TokenizerContent(place, limits.file_bytes_max))
    tokenizer = Tokenizer.from_buffer(read.required(place.tokenizer_file))
    config = read.mapping(place.config_file)
    sources = _template_sources(place, read, config)
    return LocalTokenizer(
        tokenizer,
        {name: ChatTemplate(source, limits) for name, source in sources.items()},
        _special_tokens(config),
        limits.now,
        adds_bos=config.get("add_bos_token") is True,
    )


class _Reader:
    """Reads the files of one tokenizer."""

    def __init__(self, content: TokenizerContent) -> None:
        self._content = content

    def required(self, path: Path) -> bytes:
        return self._content.read(path)

    def optional(self, path: Path) -> bytes | None:
        try:
            return self.required(path)
        except FileNotFoundError:
            return None

    def mapping(self, path: Path) -> dict[str, Any]:
        content = self.optional(path)
        found = {} if content is None else json.loads(content)
        if not isinstance(found, dict):
            raise TypeError(path.name)
        return found


def _template_sources(
    place: TokenizerPlace, read: _Reader, config: Mapping[str, Any]
) -> dict[str, str]:
    """Return the templates by name: the worker set's own file before those of the directory."""
    if place.template_file is not None:
        return {_DEFAULT_TEMPLATE: read.required(place.template_file).decode()}
    content = read.optional(place.directory_template)
    if content is not None:
        return {_DEFAULT_TEMPLATE: content.decode()}
    said = config.get("chat_template")
    if isinstance(said, list):
        return {named["name"]: named["template"] for named in said}
    return {_DEFAULT_TEMPLATE: said} if isinstance(said, str) else {}


def _special_tokens(config: Mapping[str, Any]) -> dict[str, object]:
    """Return the special tokens by the names that templates use."""
    tokens: dict[str, object] = {}
    for name, said in config.items():
        if not name.endswith("_token"):
            continue
        written = said.get("content") if isinstance(said, dict) else said
        if isinstance(written, str):
            tokens[name] = written
    return tokens
