"""A conversation that goes on has the blocks of one that is read at once, however it is written."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prompt_rig import MODEL, chat, engines, prompt_rig
from small_tokenizers import BOS, EOS, TEXTS, TURN, plain_blocks, trained, write_tokenizer
from tokenizers import AddedToken

from inferencecache.picker.fleet import EngineKind
from inferencecache.picker.prompt.blocks import PromptBlocks
from inferencecache.picker.prompt.conversation import Conversation
from inferencecache.picker.prompt.history import Histories, Learned
from inferencecache.picker.prompt.prompt_body import PromptBody, read_prompt_body
from inferencecache.picker.prompt.prompt_digest import PromptNames
from inferencecache.picker.prompt.read_prompt import read_prompt
from inferencecache.picker.prompt.token_blocks import token_blocks
from inferencecache.picker.request import Api
from inferencecache.transport.tokenize_files import LoadLimits, TokenizerPlace
from inferencecache.transport.tokenize_local import LocalTokenizer, Written, load_tokenizer
from inferencecache.transport.tokenize_plan import Ask, Learning, local_plan
from inferencecache.transport.tokenize_shelf import Loaded

KEY = b"k" * 32
NAMES = PromptNames(KEY)
LONG = " ".join(TEXTS) * 60
"""So long that looking for what a conversation begins with is worth it."""

HEAD = "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
TEMPLATES = {
    "each turn at a mark": (
        "{% for m in messages %}<|turn|>{{ m.role }}\n{{ m.content }}<|end|>{% endfor %}" + HEAD
    ),
    "only some": (
        "{{ bos_token }}{% for m in messages %}{% if m.role != 'tool' %}<|turn|>{% endif %}"
        "{{ m.role + '\n' + m.content }}{% endfor %}" + HEAD
    ),
    "some are left out": (
        "{% for m in messages %}{% if m.role != 'tool' %}<|turn|>{{ m.content }}{% endif %}"
        "{% endfor %}" + HEAD
    ),
    "by the first": (
        "{% set turns = messages %}{% for m in turns %}{{ bos_token if loop.first }}"
        "{{ '<|turn|>' + messages[0].role + m.content | trim }}{% endfor %}{{ eos_token }}" + HEAD
    ),
    "tokens on the border": "{% for m in messages %}{{ m.content }}{% endfor %}" + HEAD,
    "parts": (
        "{% for m in messages %}<|turn|>{% if m.content is string %}{{ m.content }}{% else %}"
        "{% for part in m.content %}{{ part.text }}{% endfor %}{% endif %}{% endfor %}" + HEAD
    ),
    "with a look at the last": (
        "{% for m in messages %}<|turn|>{{ m.content }}{% if loop.last %}!{% endif %}{% endfor %}"
    ),
    "with a look at all": (
        "{% for m in messages %}<|turn|>{{ messages | length }}{{ m.content }}{% endfor %}" + HEAD
    ),
}
GO_ON = [name for name in TEMPLATES if not name.startswith("with a look")]


def loaded(directory: Path, template: str) -> Loaded:
    """Return a tokenizer with a template, and special tokens of which one goes on from another."""
    tokenizer = trained()
    tokenizer.add_special_tokens([AddedToken("<|turn|><|", special=True)])
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True)])
    write_tokenizer(directory, tokenizer, chat_template=template)
    limits = LoadLimits(
        file_bytes_max=1 << 24,
        characters_max=1 << 20,
        steps_max=100_000,
        now=lambda: datetime(2026, 1, 1, tzinfo=UTC),
    )
    return Loaded(load_tokenizer(TokenizerPlace(str(directory), ""), limits), 1)


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Loaded]:
    """Return a tokenizer for each template."""
    directory = tmp_path_factory.mktemp("tokenizers")
    return {
        name: loaded(directory / str(number), template)
        for number, (name, template) in enumerate(TEMPLATES.items())
    }


@dataclass
class Reading:
    """Reads bodies one after the other, and remembers them.

    Attributes:
        loaded: By this tokenizer.
        block_tokens: Tokens per block.
        engine: For its kind.
    """

    loaded: Loaded
    block_tokens: int = 4
    engine: EngineKind = EngineKind.VLLM

    def __post_init__(self) -> None:
        """Begin with nothing."""
        self.histories = Histories(1 << 24)

    def read(self, body: dict[str, object]) -> object:
        """Return what a body comes to."""
        ask = self._ask(body)
        plan = local_plan(ask, self.loaded, Learning(self.histories, KEY))
        result = plan.compute(NAMES.name_of(ask.body, plan.context).beginnings)
        if not isinstance(result, Learned):
            return result
        self.histories.keep(result.text, result.former)
        return result.blocks

    def plain(self, body: dict[str, object]) -> PromptBlocks:
        """Return its blocks, told in the plain way."""
        ask = self._ask(body)
        prompt = read_prompt(ask.api, ask.body)
        assert isinstance(prompt, Conversation)
        tokens = self.loaded.tokenizer.tokens(prompt, self.engine)
        return token_blocks(tokens, self.block_tokens)

    def _ask(self, body: dict[str, object]) -> Ask:
        read = read_prompt_body(json.dumps(body).encode())
        assert isinstance(read, PromptBody)
        return Ask(
            api=Api.CHAT_COMPLETIONS,
            body=read,
            worker_set=engines(engine=self.engine, block_tokens=self.block_tokens),
            row=MODEL,
            block_tokens=self.block_tokens,
        )


pieces = st.sampled_from(
    [*TEXTS, TURN, EOS, BOS, "<|turn|><|", "<mask>", "<|", "", " ", "\n", "|>"]
)
contents = st.tuples(
    st.lists(pieces, max_size=3).map("".join), st.sampled_from([1, 1, 20, 40])
).map(lambda said: said[0] * said[1])
turns = st.tuples(st.sampled_from(["user", "assistant", "tool", "system"]), contents)
changes = st.sampled_from(
    [
        {},
        {},
        {},
        {"add_generation_prompt": False},
        {"tools": [{"type": "function", "function": {"name": "f"}}]},
        {"continue_final_message": True},
        {"chat_template_kwargs": {"bos_token": TURN}},
        {"temperature": 1},
    ]
)


@pytest.mark.parametrize("name", TEMPLATES)
@settings(max_examples=25)
@given(
    said=st.lists(turns, min_size=1, max_size=9),
    steps=st.lists(st.tuples(st.integers(1, 9), changes), min_size=1, max_size=4),
    blocks_of=st.tuples(st.sampled_from([1, 4, 16]), st.sampled_from(list(EngineKind))),
)
def test_blocks_are_those_of_a_conversation_that_is_read_at_once(
    tokenizers: dict[str, Loaded],
    name: str,
    said: list[tuple[str, str]],
    steps: list[tuple[int, dict[str, object]]],
    blocks_of: tuple[int, EngineKind],
) -> None:
    """Longer, shorter, the same, with other tools or switches, whatever stands on the borders."""
    reading = Reading(tokenizers[name], *blocks_of)
    for count, changed in steps:
        body = chat(("system", LONG), *said[:count], **changed)
        found = reading.read(body)
        try:
            expected = reading.plain(body)
        except Exception:  # noqa: BLE001 - what a template raises, either way
            assert not isinstance(found, PromptBlocks)
        else:
            assert found == expected


@pytest.mark.parametrize("engine", EngineKind)
def test_a_picture_in_a_turn_that_is_left_out_hides_no_other(
    tokenizers: dict[str, Loaded], engine: EngineKind
) -> None:
    """Blocks end before the first that is written, read at once or turn by turn."""
    picture = {"type": "image_url", "image_url": {"url": "http://picture"}}
    said: list[tuple[str, object]] = [
        ("system", LONG),
        ("tool", [picture]),
        ("user", TEXTS[0] * 20),
        ("assistant", TEXTS[1] * 20),
        ("user", [{"type": "text", "text": TEXTS[2] * 20}, picture]),
        ("assistant", TEXTS[3]),
    ]
    reading = Reading(tokenizers["some are left out"], 4, engine)
    before = chat(said[0], *said[2:4], add_generation_prompt=False)
    text_only = Reading(reading.loaded, 4).plain(before)
    for count in (3, 4, 5, 6):
        body = chat(*said[:count])
        found = reading.read(body)
        assert found == Reading(reading.loaded, 4, engine).read(body) == reading.plain(body)
        assert isinstance(found, PromptBlocks)
        assert found.cut == ("mm" if count > 4 else "")
    kept = len(text_only.hashes) // 8 * 8
    assert found.hashes[:kept] == text_only.hashes
    assert len(found.hashes) - kept <= 8  # the head of the picture's turn, at most


@pytest.mark.parametrize("name", TEMPLATES)
def test_only_the_first_and_the_latest_turns_are_written(
    tokenizers: dict[str, Loaded], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By templates that go from one turn to the next, if turns begin with special tokens."""
    written: list[int] = []
    write = LocalTokenizer.written

    def counting(
        self: LocalTokenizer,
        conversation: Conversation,
        engine: EngineKind,
        steps_max: int | None = None,
    ) -> Written:
        written.append(len(conversation.messages))
        return write(self, conversation, engine, steps_max)

    monkeypatch.setattr(LocalTokenizer, "written", counting)
    reading = Reading(tokenizers[name], 16)
    said = [("user" if number % 2 else "assistant", TEXTS[number % 5] * 20) for number in range(20)]
    for count in range(10, 20):
        reading.read(chat(("system", LONG), *said[:count]))

    has_marks = name in GO_ON and name != "tokens on the border"
    if has_marks:
        assert written[0] == 11
        assert max(written[1:]) <= 5
    else:
        assert written == list(range(11, 21))


async def test_an_agent_of_many_turns_has_the_blocks_of_the_whole(tmp_path: Path) -> None:
    """Through the reader that the server has."""
    tokenizer = write_tokenizer(tmp_path)
    members = engines(tokenizer=tmp_path, block_tokens=16)
    said = [("user" if number % 2 else "assistant", TEXTS[number % 5] * 20) for number in range(30)]
    async with prompt_rig(cache_bytes_max=0) as rig:
        for count in (12, 14, 14, 15, 20, 30, 13):
            text = BOS + "".join(f"{TURN}{role}\n{content}{EOS}" for role, content in said[:count])
            token_ids = tokenizer.encode(f"{text}{TURN}assistant\n", add_special_tokens=False).ids

            assert await rig.exact(chat(*said[:count]), members) == plain_blocks(token_ids, 16)
