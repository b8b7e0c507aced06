"""From a body to the prompt that an engine makes of it."""

from typing import Any, Final

import msgspec
from msgspec import Raw

from inferencecache.picker.prompt.anthropic_messages import anthropic_messages, anthropic_tools
from inferencecache.picker.prompt.blocks import NoBlocks
from inferencecache.picker.prompt.chat_messages import chat_messages
from inferencecache.picker.prompt.conversation import (
    Conversation,
    Message,
    Prompt,
    TextPrompt,
    TokenIdPrompt,
)
from inferencecache.picker.prompt.many_values import QUICK_BYTES, holds_many_values
from inferencecache.picker.prompt.prompt_body import PromptBody, is_given, is_true
from inferencecache.picker.prompt.responses_items import responses_messages, responses_tools
from inferencecache.picker.request import Api
from inferencecache.picker.request.envelope import PromptKeys, read_float, read_value

_CONVERSATIONS: Final = frozenset({Api.CHAT_COMPLETIONS, Api.ANTHROPIC_MESSAGES, Api.RESPONSES})
_SEVERAL: Final = frozenset({b'"', b"["})
_TURNS: Final = msgspec.json.Decoder(float_hook=read_float)
_BLANKS: Final = b" \t\r\n"
_LOOK_BYTES: Final = 64
"""Nobody puts more blanks before the first value."""

COMPUTES_ANEW: Final = "prompt_logprobs"
"""Why a prompt has no blocks of which an engine computes every token."""

MALFORMED: Final = NoBlocks(why="prompt_malformed", is_by_design=True)
"""Of a prompt that every engine refuses."""

TOO_LONG: Final = NoBlocks(why="prompt_too_long")
"""Of a prompt that takes too long to look at."""


class _Several(msgspec.Struct, frozen=True, array_like=True):
    """The first of several prompts; of the others, which may be millions, nothing is built."""

    first: Raw


def without_prompt(api: Api, body: PromptBody) -> str:
    """Return why nobody can know the prompt, as a token for the reason; empty if one can.

    Embeddings and rankings have no cache, and what a server has stored is not in the body.
    """
    if api not in _CONVERSATIONS and api not in {Api.COMPLETIONS, Api.AMBIGUOUS_INPUT}:
        return "api"
    stored = (body.keys.previous_response_id, body.keys.conversation)
    return "stored_history" if api is Api.RESPONSES and any(map(is_given, stored)) else ""


def without_tokens(api: Api, body: PromptBody) -> str:
    """Return why the engine's cache cannot be compared with, by design; empty if it can."""
    keys = body.keys
    if body.salt:
        return "cache_salt"
    if computes_anew(api, body):
        return COMPUTES_ANEW
    if is_given(keys.truncate_prompt_tokens):
        return "truncate_prompt_tokens"
    if is_given(keys.chat_template):
        return "own_template"
    return "api" if api is Api.AMBIGUOUS_INPUT else without_prompt(api, body)


def computes_anew(api: Api, body: PromptBody) -> bool:
    """Return whether the engine reads nothing of the prompt from its cache, whatever it holds."""
    keys = body.keys
    asks_logprobs = is_true(keys.echo, default=False) and is_given(keys.logprobs)
    return is_given(keys.prompt_logprobs) or (api is Api.COMPLETIONS and asks_logprobs)


def holds_token_ids(api: Api, body: PromptBody) -> bool:
    """Return whether the prompt is given as token ids; engines look at no prompt beside turns."""
    if api is not Api.COMPLETIONS:
        return False
    start = bytes(memoryview(body.keys.prompt)[:_LOOK_BYTES]).lstrip(b"[" + _BLANKS)
    return start[:1] != b"" and start[:1] in b"-0123456789"


def read_prompt(api: Api, body: PromptBody) -> Prompt | NoBlocks:
    """Return the prompt of *body*; of several the first.

    Complexity: O(n); this builds its values.
    """
    if api in {Api.COMPLETIONS, Api.AMBIGUOUS_INPUT}:
        return _completion(
            body.keys, body.keys.prompt if api is Api.COMPLETIONS else body.keys.input
        )
    if body.length > QUICK_BYTES and holds_many_values(raw for _, raw in body.parts):
        return TOO_LONG
    messages = _messages(api, body)
    if not messages:
        return MALFORMED
    keys = body.keys
    continues = is_true(keys.continue_final_message, default=False)
    return Conversation(
        messages=messages,
        tools=_tools(api, keys),
        tool_choice=_value(keys.tool_choice),
        variables=_variables(keys),
        adds_generation_prompt=not continues and is_true(keys.add_generation_prompt, default=True),
        continues_final_message=continues,
        adds_special_tokens=is_true(keys.add_special_tokens, default=False),
    )


def _completion(keys: PromptKeys, raw: Raw) -> Prompt | NoBlocks:
    """Return the prompt, or the first of several: a text, or a list of token ids."""
    if _begins_with(raw, b"["):
        several = read_value(raw, _Several) if _first_of(raw) in _SEVERAL else None
        raw = several.first if several else raw
    if _begins_with(raw, b"["):
        token_ids = read_value(raw, list[int])  # reads a million at once, without a look at each
        return TokenIdPrompt(token_ids=token_ids) if token_ids else MALFORMED
    text = read_value(raw, str)
    if text is None:
        return MALFORMED
    adds = is_true(keys.add_special_tokens, default=True)
    return TextPrompt(text=text, adds_special_tokens=adds)


def _begins_with(raw: Raw, first: bytes) -> bool:
    return bytes(memoryview(raw)[:1]) == first


def _first_of(raw: Raw) -> bytes:
    """Return the byte with which the first value in a list begins."""
    return bytes(memoryview(raw)[1:_LOOK_BYTES]).lstrip(_BLANKS)[:1]


def _messages(api: Api, body: PromptBody) -> tuple[Message, ...] | None:
    keys = body.keys
    if api is Api.RESPONSES:
        return responses_messages(_value(keys.instructions), _value(keys.input))
    if api is Api.ANTHROPIC_MESSAGES:
        return anthropic_messages(_value(keys.system), _turns(body))
    return chat_messages(_turns(body))


def _turns(body: PromptBody) -> object:
    """Return the turns of a body; an agent's has hundreds."""
    if not body.turns:
        return _value(body.keys.messages)
    try:
        return list(map(_TURNS.decode, body.turns))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _tools(api: Api, keys: PromptKeys) -> tuple[object, ...] | None:
    tools = _value(keys.tools)
    if not isinstance(tools, list) or not tools:
        return None
    if api is Api.ANTHROPIC_MESSAGES:
        tools = anthropic_tools(tools)
    elif api is Api.RESPONSES:
        tools = responses_tools(tools)
    return tuple(tools) or None


def _variables(keys: PromptKeys) -> dict[str, object]:
    variables: dict[str, object] = {}
    for name in ("documents", "reasoning_effort"):
        value = _value(getattr(keys, name))
        if value is not None:
            variables[name] = value
    given = _value(keys.chat_template_kwargs)
    return {**variables, **given} if isinstance(given, dict) else variables


def _value(raw: Raw) -> Any:  # noqa: ANN401 - whatever a client wrote
    return read_value(raw, Any) if is_given(raw) else None
