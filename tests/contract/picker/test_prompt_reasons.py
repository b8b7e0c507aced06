"""A prompt without blocks says why, and whether anything is missing."""

from pathlib import Path

import pytest
from prompt_rig import MODEL, chat, engines, prompt_rig, question
from small_tokenizers import write_tokenizer

from inferencecache.picker.prompt import NoBlocks


@pytest.mark.parametrize(
    ("further", "why"),
    [
        ({"cache_salt": "s"}, "cache_salt"),
        ({"cache_salt": "x" * 5_000}, "cache_salt"),
        ({"extra_key": "s"}, "cache_salt"),
        ({"prompt_logprobs": 0}, "prompt_logprobs"),
        ({"truncate_prompt_tokens": 5}, "truncate_prompt_tokens"),
        ({"chat_template": "{{ messages }}"}, "own_template"),
    ],
    ids=lambda value: str(value)[:30],
)
async def test_what_keeps_a_request_from_the_cache_is_no_lack(
    tmp_path: Path, further: dict[str, object], why: str
) -> None:
    """Engines do not look, or look elsewhere; nothing is compared, and nothing is missing."""
    write_tokenizer(tmp_path)
    async with prompt_rig() as rig:
        body = chat(("user", "warm"), **further)

        assert await rig.why(body, engines(tokenizer=tmp_path)) == (why, True)


@pytest.mark.parametrize("further", [{"cache_salt": ""}, {"cache_salt": None}, {"echo": True}])
async def test_an_empty_wish_is_none(tmp_path: Path, further: dict[str, object]) -> None:
    """Null and nothing are no salt."""
    write_tokenizer(tmp_path)
    async with prompt_rig() as rig:
        body = {"model": "m", "prompt": "where a prompt is warm", **further}

        assert (await rig.exact(body, engines(tokenizer=tmp_path))).prompt_tokens > 1


async def test_echoed_log_probabilities_need_a_prompt_computed_anew(tmp_path: Path) -> None:
    """Completions ask for them in an older way, too."""
    write_tokenizer(tmp_path)
    async with prompt_rig() as rig:
        body = {"model": "m", "prompt": "warm", "echo": True, "logprobs": 1}

        assert await rig.why(body, engines(tokenizer=tmp_path)) == ("prompt_logprobs", True)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"model": "m", "input": ["a", "b"]}, "api"),
        ({"model": "m", "query": "a", "documents": ["b"]}, "api"),
        ({"model": "m", "text_1": "a", "text_2": "b"}, "api"),
        ({"model": "m", "input": "a"}, "api"),
        ({"model": "m"}, "api"),
        ({"model": "m", "input": "a", "previous_response_id": "r"}, "stored_history"),
        ({"model": "m", "messages": []}, "prompt_malformed"),
        ({"model": "m", "messages": ["a"]}, "prompt_malformed"),
    ],
    ids=str,
)
async def test_requests_without_a_prompt_lack_nothing(
    tmp_path: Path, body: dict[str, object], why: str
) -> None:
    """Embeddings, ranking, stored histories: there is nothing to compare."""
    write_tokenizer(tmp_path)
    async with prompt_rig() as rig:
        assert await rig.why(body, engines(tokenizer=tmp_path)) == (why, True)


async def test_nothing_configured_is_no_lack_but_half_of_it_is(tmp_path: Path) -> None:
    """Without a tokenizer prompts are hashed by character, as the worker set asks for."""
    write_tokenizer(tmp_path)
    async with prompt_rig() as rig:
        body = chat(("user", "warm"))
        assert await rig.why(body, engines()) == ("no_tokenizer", True)
        assert await rig.why(body, engines(block_tokens=None)) == ("no_tokenizer", True)
        sized = engines(tokenizer=tmp_path, block_tokens=None)
        assert await rig.why(body, sized) == ("block_size_unknown", False)
        gone = engines(tokenizer=tmp_path / "gone")
        assert await rig.why(body, gone) == ("tokenizer_missing", False)
        assert rig.prompts.reader.lacks_tokenizer(gone)
        assert not rig.prompts.reader.lacks_tokenizer(sized)


async def test_a_body_above_the_limit_is_not_looked_at(tmp_path: Path) -> None:
    """Whoever sends megabytes of pictures does not hold up others."""
    write_tokenizer(tmp_path)
    async with prompt_rig(body_bytes_max=200) as rig:
        body = chat(("user", "x" * 200))

        assert await rig.why(body, engines(tokenizer=tmp_path)) == ("prompt_too_long", False)


async def test_a_fault_of_our_own_ends_no_pick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told and placed, without a word of the prompt, and the Pick goes on without blocks."""

    def fault(*_: object) -> None:
        raise TypeError("secret")

    write_tokenizer(tmp_path)
    for module in ("tokenize_plan", "tokenize_reader"):
        monkeypatch.setattr(f"inferencecache.transport.{module}.read_prompt", fault)
    async with prompt_rig() as rig:
        body = chat(("user", "warm"))
        for members in (engines(tokenizer=tmp_path), engines(url="http://127.0.0.1:1")):
            assert await rig.why(body, members) == ("tokenizer_failed", False)
        found = await rig.prompts.reader.characters(question(body), MODEL)

        assert isinstance(found, NoBlocks)
        assert (found.why, found.is_by_design) == ("prompt_unreadable", False)
        lines = rig.log.of("picker_prompt_without_tokens")
        assert [line["worker_set"] for line in lines] == ["default/w", "*/m"]
        assert str(lines[0]["error"]).startswith("TypeError at ")
        assert "secret" not in rig.log.text


async def test_a_prompt_computed_anew_has_no_characters_either() -> None:
    """It is warm nowhere, wherever its like went before."""
    async with prompt_rig() as rig:
        asked = question(chat(("user", "warm " * 100), prompt_logprobs=0))

        assert await rig.prompts.reader.characters(asked, MODEL) == NoBlocks(
            why="prompt_logprobs", is_by_design=True
        )
