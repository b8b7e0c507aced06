"""Ask an engine for the tokens of a prompt: ``/tokenize``, as vLLM and SGLang serve it."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

import aiohttp
import msgspec

from inferencecache.errors import InferenceCacheError
from inferencecache.fingerprint import TOKEN_ID_MAX
from inferencecache.picker.fleet import Endpoint, EngineKind, WorkerSet
from inferencecache.picker.prompt.characters import flattened
from inferencecache.picker.prompt.conversation import Conversation, Message, TextPrompt
from inferencecache.picker.prompt.token_blocks import Tokens

_OK: Final = 200
_TRIES: Final = 2


class EngineTokenizeError(InferenceCacheError):
    """An engine gave no tokens.

    Args:
        reason: Why, in one line that holds nothing of a prompt.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


_Number = Annotated[int, msgspec.Meta(ge=0, le=TOKEN_ID_MAX)]


class _Answer(msgspec.Struct):
    """What engines say.

    Attributes:
        tokens: All are checked, also those behind the last full block: one that is no token says
            that none of them comes from a tokenizer.
        count: How many there are; an engine need not say it.
    """

    tokens: list[_Number]
    count: _Number | None = None


_ANSWER: Final = msgspec.json.Decoder(_Answer)


class EngineTokenizer:
    """Asks the workers of a set in turn, over connections that stay open.

    Args:
        session: Keeps them.
        timeout_s: Longest wait for one worker, in seconds.
        answer_bytes_max: Longest answer.
        bytes_per_token: How long a token is believed to be of what stands behind a picture.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        timeout_s: float,
        answer_bytes_max: int,
        bytes_per_token: int,
    ) -> None:
        self._session = session
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._answer_bytes_max = answer_bytes_max
        self._bytes_per_token = bytes_per_token
        self._turn = 0

    async def tokens(
        self, prompt: TextPrompt | Conversation, worker_set: WorkerSet, model: str
    ) -> Tokens:
        """Return the tokens of *prompt*.

        Args:
            prompt: What a body asks for; of a conversation with pictures the turns before them.
            worker_set: Whose workers are asked; another one if the first does not answer.
            model: What they call it.

        Raises:
            EngineTokenizeError: None of those that were asked has given any.
        """
        question = tokenize_question(prompt, worker_set.engine, model)
        body = msgspec.json.encode(question)
        must_have_tokens = _has_whole_text(prompt)
        failure = EngineTokenizeError("no worker")
        for endpoint in self._next(worker_set):
            try:
                content = await self._ask(tokenize_url(worker_set, endpoint), body)
                token_ids = _token_ids(content, must_have_tokens=must_have_tokens)
            except EngineTokenizeError as error:
                failure = error
            else:
                behind = _bytes_behind_media(prompt)
                further = None if behind is None else behind // self._bytes_per_token
                return Tokens(token_ids=token_ids, further=further)
        raise failure

    def _next(self, worker_set: WorkerSet) -> Iterator[Endpoint]:
        endpoints = worker_set.endpoints
        self._turn += 1
        for step in range(min(_TRIES, len(endpoints))):
            yield endpoints[(self._turn + step) % len(endpoints)]

    async def _ask(self, url: str, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json"}
        try:
            async with self._session.post(
                url, data=body, headers=headers, timeout=self._timeout, allow_redirects=False
            ) as answer:
                if answer.status != _OK:
                    raise EngineTokenizeError(f"HTTP status {answer.status}")
                return await self._read(answer)
        except (aiohttp.ClientError, TimeoutError, ValueError, OSError) as error:
            raise EngineTokenizeError(type(error).__name__) from error

    async def _read(self, answer: aiohttp.ClientResponse) -> bytes:
        content = bytearray()
        async for part in answer.content.iter_any():
            content += part
            if len(content) > self._answer_bytes_max:
                raise EngineTokenizeError(f"an answer above {self._answer_bytes_max:,} bytes")
        return bytes(content)


def _token_ids(content: bytes, *, must_have_tokens: bool) -> list[int]:
    """Return the tokens that an answer gives.

    Args:
        content: The answer.
        must_have_tokens: Whether none are no tokens.

    Raises:
        EngineTokenizeError: It gives none that can be believed.

    Complexity: O(n) in its bytes.
    """
    try:
        answer = _ANSWER.decode(content)
    except msgspec.MsgspecError as error:
        # Its text names the place and what is allowed there, and quotes nothing.
        raise EngineTokenizeError(f"an answer without tokens: {error}") from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise EngineTokenizeError(f"an answer without tokens: {type(error).__name__}") from error
    given = len(answer.tokens)
    if answer.count is not None and answer.count != given:
        raise EngineTokenizeError(f"an answer of {given} tokens that counts {answer.count}")
    if must_have_tokens and not given:
        raise EngineTokenizeError("an answer of no tokens to a prompt that has text")
    return answer.tokens


def _has_whole_text(prompt: TextPrompt | Conversation) -> bool:
    """Return whether text is asked for, and all of it.

    Turns before a picture may have no tokens: templates write a system turn into the one behind it.
    """
    if isinstance(prompt, TextPrompt):
        return bool(prompt.text)
    return prompt.first_media is None and any(any(turn.parts) for turn in prompt.messages)


def tokenize_url(worker_set: WorkerSet, endpoint: Endpoint) -> str:
    """Return where a worker tokenizes."""
    host = endpoint.address.rpartition(":")[0]
    url = worker_set.tokenize_url.replace("{address}", endpoint.address)
    return url.replace("{host}", host)


def tokenize_question(
    prompt: TextPrompt | Conversation, engine: EngineKind, model: str
) -> dict[str, Any]:
    """Return what an engine is asked.

    Args:
        prompt: What a body asks for.
        engine: Who is asked.
        model: What it calls it.
    """
    if isinstance(prompt, TextPrompt):
        return {
            "model": model,
            "prompt": prompt.text,
            "add_special_tokens": prompt.adds_special_tokens,
        }
    until = prompt.first_media
    is_whole = until is None
    question: dict[str, Any] = {
        "model": model,
        "messages": [_message(message) for message in prompt.messages[:until]],
        "continue_final_message": is_whole and prompt.continues_final_message,
        **_given("tools", prompt.tools),
        **_given("chat_template_kwargs", dict(prompt.variables)),
    }
    if engine is EngineKind.SGLANG:
        return {**question, **_given("tool_choice", prompt.tool_choice)}
    return {
        **question,
        "add_generation_prompt": is_whole and prompt.adds_generation_prompt,
        "add_special_tokens": prompt.adds_special_tokens,
    }


def _given(name: str, value: object) -> Mapping[str, object]:
    return {name: value} if value else {}


def _message(message: Message) -> dict[str, Any]:
    content: object = message.content
    if not isinstance(content, str):
        content = [{"type": "text", "text": part} for part in message.parts]
    return {"role": message.role, "content": content, **message.rest}


def _bytes_behind_media(prompt: TextPrompt | Conversation) -> int | None:
    """Return how long the turns are from the first picture on, None without one."""
    if isinstance(prompt, TextPrompt) or prompt.first_media is None:
        return None
    rest = prompt.messages[prompt.first_media :]
    return len(flattened(Conversation(messages=rest)))
