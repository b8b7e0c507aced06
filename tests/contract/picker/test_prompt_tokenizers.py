"""Tokenizers are loaded once, again when their files change, and never too many."""

import asyncio
import sys
from pathlib import Path

import pytest
from prompt_rig import PromptRig, chat, engines, prompt_rig
from small_tokenizers import BOS, CHAT_TEMPLATE, write_tokenizer

BODY = chat(("user", "where a prompt is warm"))
CHECK_NS = 5_000_000_000


async def after_a_check(rig: PromptRig, members: object) -> object:
    """Return the blocks of a prompt once the files have been looked at again."""
    rig.clock.advance_ns(CHECK_NS)
    await rig.blocks(BODY, members)  # type: ignore[arg-type] # a worker set
    shelf = rig.prompts.reader._parts.shelf
    await asyncio.gather(*(slot.check for slot in shelf._slots.values() if slot.check))
    return await rig.blocks(BODY, members)  # type: ignore[arg-type] # a worker set


def loads(rig: PromptRig) -> int:
    """Return how often a tokenizer was loaded."""
    return len(rig.log.of("picker_tokenizer_loaded"))


async def test_a_tokenizer_is_loaded_once(tmp_path: Path) -> None:
    """However many ask, at a time or one after the other, and however often it is looked at."""
    write_tokenizer(tmp_path)
    members = engines(tokenizer=tmp_path)
    async with prompt_rig() as rig:
        await asyncio.gather(*(rig.exact(BODY, members) for _ in range(5)))
        for _ in range(3):
            await after_a_check(rig, members)

        assert loads(rig) == 1


async def test_a_changed_template_is_used_without_a_restart(tmp_path: Path) -> None:
    """What was remembered of the old one is not mistaken for the new one's."""
    write_tokenizer(tmp_path)
    members = engines(tokenizer=tmp_path)
    async with prompt_rig() as rig:
        before = await rig.exact(BODY, members)
        (tmp_path / "chat_template.jinja").write_text("x" + CHAT_TEMPLATE)
        after = await after_a_check(rig, members)

        assert after != before
        assert loads(rig) == 2


async def test_what_is_written_anew_and_says_the_same_is_not_loaded_again(tmp_path: Path) -> None:
    """Nor after it said something else for a while that was no tokenizer."""
    write_tokenizer(tmp_path)
    members = engines(tokenizer=tmp_path)
    path = tmp_path / "tokenizer.json"
    content = path.read_bytes()
    async with prompt_rig() as rig:
        before = await rig.exact(BODY, members)
        for written in (content, b"{", content):
            path.unlink()
            path.write_bytes(written)
            assert await after_a_check(rig, members) == before

        assert loads(rig) == 1
        assert len(rig.log.of("picker_tokenizer_not_loaded")) == 1


async def test_a_file_that_goes_and_comes_back_changes_the_tokenizer_twice(tmp_path: Path) -> None:
    """A template of its own stands before the one in the config while it is there."""
    write_tokenizer(tmp_path)
    members = engines(tokenizer=tmp_path)
    template = tmp_path / "chat_template.jinja"
    template.write_text("x" + CHAT_TEMPLATE)
    async with prompt_rig() as rig:
        before = await rig.exact(BODY, members)
        template.unlink()
        without = await after_a_check(rig, members)
        template.write_text("x" + CHAT_TEMPLATE)
        after = await after_a_check(rig, members)

        assert before == after != without
        assert loads(rig) == 3


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("tokenizer.json", "{"),
        ("tokenizer.json", None),
        ("tokenizer_config.json", "[]"),
        ("tokenizer_config.json", "\udcff"),
        ("chat_template.jinja", "{% for %}"),
    ],
)
async def test_a_bad_file_takes_nothing_away(
    tmp_path: Path, file: str, content: str | None
) -> None:
    """The former tokenizer stays, and one line says why."""
    write_tokenizer(tmp_path)
    members = engines(tokenizer=tmp_path)
    async with prompt_rig() as rig:
        before = await rig.exact(BODY, members)
        path = tmp_path / file
        if content is None:
            path.unlink()
        else:
            path.write_text(content, errors="surrogateescape")
        for _ in range(3):
            assert await after_a_check(rig, members) == before

        (line,) = rig.log.of("picker_tokenizer_not_loaded")
        assert (line["directory"], line["keeps_former"]) == (str(tmp_path), True)
        assert line["error"]


async def test_a_tokenizer_that_comes_later_is_found(tmp_path: Path) -> None:
    """Volumes are mounted when they are; until then the reason says what is missing."""
    members = engines(tokenizer=tmp_path / "later")
    async with prompt_rig() as rig:
        for _ in range(3):
            assert await rig.why(BODY, members) == ("tokenizer_missing", False)
        assert len(rig.log.of("picker_tokenizer_not_loaded")) == 1
        write_tokenizer(tmp_path / "later")
        await after_a_check(rig, members)

        assert (await rig.exact(BODY, members)).prompt_tokens > 1
        assert not rig.prompts.reader.lacks_tokenizer(members)


@pytest.mark.parametrize("kind", ["directory", "huge"])
async def test_what_is_no_file_is_not_read(tmp_path: Path, kind: str) -> None:
    """Nothing endless, nothing that waits, nothing that fills the memory."""
    write_tokenizer(tmp_path)
    path = tmp_path / "tokenizer.json"
    path.unlink()
    if kind == "directory":
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.truncate(1 << 30)
    async with prompt_rig() as rig:
        assert await rig.why(BODY, engines(tokenizer=tmp_path)) == ("tokenizer_missing", False)


async def test_without_the_packages_a_tokenizer_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are an extra; the log says which."""
    write_tokenizer(tmp_path)
    monkeypatch.setitem(sys.modules, "inferencecache.transport.tokenize_local", None)
    async with prompt_rig() as rig:
        assert await rig.why(BODY, engines(tokenizer=tmp_path)) == ("tokenizer_missing", False)
        (line,) = rig.log.of("picker_tokenizer_not_loaded")

        assert "extra 'tokenizers'" in str(line["error"])


async def test_there_are_never_too_many(tmp_path: Path) -> None:
    """The one unused for longest goes, and comes back when it is needed."""
    async with prompt_rig(tokenizers_max=2) as rig:
        sets = []
        for name in ("a", "b", "c"):
            write_tokenizer(tmp_path / name)
            sets.append(engines(tokenizer=tmp_path / name))
            await rig.exact(BODY, sets[-1])
        assert len(rig.prompts.reader._parts.shelf) == 2
        await rig.exact(BODY, sets[0])

        assert loads(rig) == 4


async def test_a_fleet_has_its_tokenizers_before_the_first_pick(tmp_path: Path) -> None:
    """They are loaded when it comes into force, and go when it goes."""
    write_tokenizer(tmp_path)
    members = engines(tokenizer=tmp_path)
    async with prompt_rig() as rig:
        rig.prompts.adopt([members, engines()])
        shelf = rig.prompts.reader._parts.shelf
        await asyncio.gather(*(slot.check for slot in shelf._slots.values() if slot.check))
        assert (len(shelf), loads(rig)) == (1, 1)
        await rig.exact(BODY, members)
        assert loads(rig) == 1
        rig.prompts.adopt([])

        assert len(shelf) == 0


async def test_the_worker_sets_own_template_stands_before_all_others(tmp_path: Path) -> None:
    """Then the file of the directory, then the config; of several, that for tools."""
    templates = [
        {"name": "default", "template": "plain"},
        {"name": "tool_use", "template": "with tools"},
    ]
    tokenizer = write_tokenizer(tmp_path / "t", chat_template=templates)
    own = tmp_path / "own.jinja"
    own.write_text("own")
    tools = {**BODY, "tools": [{"type": "function", "function": {"name": "add"}}]}

    async def written(body: object, template: Path | str = "") -> int:
        members = engines(tokenizer=tmp_path / "t", template=template, block_tokens=1)
        async with prompt_rig() as rig:
            return (await rig.exact(body, members)).prompt_tokens

    def counted(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False).ids)

    assert await written(BODY) == counted("plain")
    assert await written(tools) == counted("with tools")
    await asyncio.to_thread((tmp_path / "t" / "chat_template.jinja").write_text, f"{BOS}{BOS}")
    assert await written(tools) == 2
    assert await written(tools, own) == counted("own")
