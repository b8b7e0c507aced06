"""The small tokenizer gives the tokens that libraries find in its files."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer

from inferencecache.simulation.byte_tokenizer import (
    BEGIN,
    END,
    ChatMessage,
    chat_text,
    encode,
    tokenizer_files,
)

FILES = tokenizer_files()
LIBRARY = Tokenizer.from_str(FILES["tokenizer.json"].decode())
TEMPLATE = ImmutableSandboxedEnvironment().from_string(
    msgspec.json.decode(FILES["tokenizer_config.json"])["chat_template"]
)
TEXTS = st.lists(st.one_of(st.text(), st.sampled_from([BEGIN, END, "<|im_"]))).map("".join)


@given(TEXTS)
def test_the_library_finds_the_same_tokens(text: str) -> None:
    """With and without special tokens, since the file adds none."""
    assert LIBRARY.encode(text, add_special_tokens=False).ids == encode(text)
    assert LIBRARY.encode(text).ids == encode(text)


@given(TEXTS)
def test_tokens_are_the_text(text: str) -> None:
    """Nothing is lost."""
    assert LIBRARY.decode(encode(text), skip_special_tokens=False) == text


@pytest.mark.parametrize("awaits_answer", [True, False])
def test_the_template_says_the_same(awaits_answer: bool) -> None:  # noqa: FBT001 - a parameter
    """Contents as text, in parts, and none at all."""
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": None},
    ]
    said = [
        ChatMessage("system", "Be brief."),
        ChatMessage("user", "ab"),
        ChatMessage("assistant", ""),
    ]
    rendered = TEMPLATE.render(messages=messages, add_generation_prompt=awaits_answer)

    assert rendered == chat_text(said, awaits_answer=awaits_answer)


def test_files_are_written_as_they_are_named(tmp_path: Path) -> None:
    """A directory with them is what libraries load."""
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)

    assert Tokenizer.from_file(str(tmp_path / "tokenizer.json")).get_vocab_size() == 258
