"""A tokenizer so small that it needs no library, and whose file every tokenizer library reads.

Every byte of a text is a token; marks of the chat template have tokens of their own, wherever they
stand in a text. The files are those of any model: ``tokenizer.json`` and ``tokenizer_config.json``
with the chat template in it.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

BEGIN: Final = "<|im_start|>"
END: Final = "<|im_end|>"
MARKS: Final = {BEGIN: 256, END: 257}
"""What is no byte, by its text."""

CHAT_TEMPLATE: Final = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' }}"
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% elif message['content'] %}"
    "{% for part in message['content'] %}{{ part['text'] }}{% endfor %}"
    "{% endif %}"
    "{{ '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

_MARK: Final = re.compile("|".join(map(re.escape, MARKS)))
_PRINTABLE: Final = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
"""Bytes that stand for themselves in the file; the others are moved behind the last of them."""


class ChatMessage(NamedTuple):
    """One message of a conversation.

    Attributes:
        role: Who says it.
        content: What.
    """

    role: str
    content: str


def encode(text: str) -> list[int]:
    """Return the tokens of *text*, 0 to 257."""
    tokens: list[int] = []
    start = 0
    for mark in _MARK.finditer(text):
        tokens += text[start : mark.start()].encode()
        tokens.append(MARKS[mark.group()])
        start = mark.end()
    tokens += text[start:].encode()
    return tokens


def chat_text(messages: Sequence[ChatMessage], *, awaits_answer: bool = True) -> str:
    """Return what the chat template makes of *messages*.

    Args:
        messages: The conversation.
        awaits_answer: Whether the text ends where an answer begins.
    """
    said = "".join(f"{BEGIN}{role}\n{content}{END}\n" for role, content in messages)
    return said + (f"{BEGIN}assistant\n" if awaits_answer else "")


def tokenizer_files() -> dict[str, bytes]:
    """Return the files of the tokenizer, by name."""
    vocabulary = {_letter(byte): byte for byte in range(256)}
    byte_level = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": False,
        "use_regex": False,
    }
    tokenizer: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added(text, token) for text, token in MARKS.items()],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": vocabulary,
            "merges": [],
        },
    }
    configuration = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "chat_template": CHAT_TEMPLATE,
        "eos_token": END,
    }
    return {
        "tokenizer.json": msgspec.json.encode(tokenizer),
        "tokenizer_config.json": msgspec.json.encode(configuration),
    }


def _letter(byte: int) -> str:
    """Return the letter that stands for *byte* in files of byte-level tokenizers."""
    if byte in _PRINTABLE:
        return chr(byte)
    moved = [other for other in range(256) if other not in _PRINTABLE]
    return chr(0x100 + moved.index(byte))


def _added(text: str, token: int) -> dict[str, Any]:
    return {
        "id": token,
        "content": text,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }
