"""A Pick is degraded exactly when a configured part of the signal is missing, by its name."""

from dataclasses import dataclass, replace

import pytest
from fleets import provider, question, row, worker_set
from prefix_rig import PrefixRig, ToldIndex, candidates_of, exact, salted, tokens

from inferencecache.picker.choice import Question
from inferencecache.picker.fleet import PrefixUse
from inferencecache.picker.prefix import NOTHING_FOUND, PrefixSource
from inferencecache.picker.prefix.index_source import IndexFlaw, IndexFound
from inferencecache.picker.prompt.blocks import NoBlocks, PromptBlocks
from inferencecache.types import PROBE_TENANT_ID

A, B = "10.0.0.1:8000", "10.0.0.2:8000"
SET = replace(worker_set("w", row("m"), addresses=[A, B]), block_size_tokens=16)
PROMPT = tokens(640)
MISSING = NoBlocks(why="tokenizer_missing")
LATE = NoBlocks(why="tokenizer_timeout")
READ = exact(PROMPT)
ASKED = question(tenant="t")
BY_DESIGN = NoBlocks(why="no_tokenizer", is_by_design=True)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One row.

    Attributes:
        id: What it is about.
        reports: Tenant, model and scheme that the index has heard of from A; None for nothing.
        blocks: What the reader says.
        use: By what the set goes.
        has_block_size: Whether the set says how to ask the index.
        asked: Who asks for what.
        degraded: What the reason names.
    """

    id: str
    reports: tuple[str, str, str] | None = ("t", "m", "vllm")
    blocks: PromptBlocks | NoBlocks = READ
    use: PrefixUse = PrefixUse.AUTO
    has_block_size: bool = True
    asked: Question = ASKED
    degraded: tuple[str, ...] = ()


CASES = [
    Case(id="match"),
    Case(id="healthy without a match", blocks=exact(tokens(640, first=9_000))),
    Case(id="prompt shorter than a block", blocks=exact(tokens(5))),
    Case(id="cold", reports=None, degraded=("index_cold",)),
    Case(id="cold, nothing said", reports=None, has_block_size=False),
    Case(
        id="cold, asked for",
        reports=None,
        has_block_size=False,
        use=PrefixUse.PRECISE,
        degraded=("index_cold",),
    ),
    Case(id="cold, not asked for", reports=None, use=PrefixUse.APPROXIMATE),
    Case(id="goes by nothing", reports=None, use=PrefixUse.NONE, blocks=MISSING),
    Case(id="tokenizer missing", blocks=MISSING, degraded=("tokenizer_missing",)),
    Case(id="tokenizer late", blocks=LATE, degraded=("tokenizer_timeout",)),
    Case(id="tokenizer missing, not needed", blocks=MISSING, use=PrefixUse.APPROXIMATE),
    Case(id="no tokenizer by design", blocks=BY_DESIGN),
    Case(
        id="no tokenizer though asked for",
        blocks=BY_DESIGN,
        use=PrefixUse.PRECISE,
        degraded=("tokenizer_missing",),
    ),
    Case(id="embeddings", blocks=NoBlocks(why="api", is_by_design=True)),
    Case(id="other tenant", reports=("u", "m", "vllm"), degraded=("unknown_tenant",)),
    Case(id="no tenant", asked=question(tenant=""), degraded=("unknown_tenant",)),
    Case(id="probe", asked=question(tenant=PROBE_TENANT_ID), degraded=("unknown_tenant",)),
    Case(id="other model", reports=("t", "n", "vllm"), degraded=("unknown_model",)),
    Case(id="other scheme", reports=("t", "m", "sglang"), degraded=("unknown_hash_scheme",)),
    Case(id="picture", blocks=exact(PROMPT[:320], cut="mm"), degraded=("mm_truncated",)),
    Case(
        id="nothing but a picture",
        blocks=NoBlocks(why="mm", is_by_design=True),
        degraded=("mm_truncated",),
    ),
    Case(
        id="picture and other tenant",
        reports=("u", "m", "vllm"),
        blocks=exact(PROMPT[:320], cut="mm"),
        degraded=("mm_truncated", "unknown_tenant"),
    ),
    Case(id="salted", asked=salted(question(tenant="t"))),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_reason_names_what_is_missing(case: Case) -> None:
    """In process: one row per way in which something can be missing, or not."""
    members = replace(SET, prefix=case.use, block_size_tokens=16 if case.has_block_size else None)
    rig = PrefixRig(members)
    rig.reader.answer = case.blocks
    if case.reports is not None:
        tenant_id, model_id, hash_scheme = case.reports
        rig.report(A, PROMPT, tenant_id=tenant_id, model_id=model_id, hash_scheme=hash_scheme)
    assert rig.sense(case.asked).degraded == case.degraded


@pytest.mark.parametrize("flaw", list(IndexFlaw))
def test_every_flaw_of_an_index_is_named(flaw: IndexFlaw) -> None:
    """An index that cannot say is a missing part, whichever way it cannot."""
    index = ToldIndex(IndexFound(flaw=flaw), hears_replicas=False)
    found = PrefixRig(SET, index=index, is_named=True).sense(question(tenant="t"))
    assert found.degraded == (flaw.value,)
    assert found.source is PrefixSource.APPROXIMATE
    assert len(index.asked) == 1


def test_an_index_that_was_named_is_asked_for_sets_that_say_nothing() -> None:
    """Somebody wants it, so a set need not say so as well."""
    index = ToldIndex(IndexFound(), hears_replicas=False)
    plain = worker_set("w", row("m"), addresses=[A])
    assert PrefixRig(plain, index=index, is_named=True).sense(question(tenant="t")).degraded == ()
    assert len(index.asked) == 1


def test_without_any_index_a_set_that_wants_one_misses_it() -> None:
    """And one that does not care goes by what went where."""
    wanting = replace(SET, prefix=PrefixUse.PRECISE)
    assert PrefixRig(wanting, has_index=False).sense(question(tenant="t")).degraded == (
        "index_cold",
    )
    found = PrefixRig(SET, has_index=False).sense(question(tenant="t"))
    assert (found.degraded, found.source) == ((), PrefixSource.NONE)


def test_providers_have_no_caches_of_ours() -> None:
    """Nothing is asked, and nothing is missing."""
    rig = PrefixRig(provider("p", row("m")))
    assert rig.sense(question(tenant="t"), []) is NOTHING_FOUND


def test_one_set_without_its_tokenizer_leaves_the_other_its_matches() -> None:
    """What is missing is missing for one; both are told of."""
    other = replace(worker_set("v", row("m"), addresses=["10.0.0.9:8000"]), block_size_tokens=16)
    rig = PrefixRig(SET, other)
    rig.reader.by_set["v"] = MISSING
    rig.report(A, PROMPT)
    found = rig.sense(question(tenant="t"), candidates_of(SET, other))
    assert found.degraded == ("tokenizer_missing",)
    assert found.matches[A].matched_tokens == 639
    assert found.source is PrefixSource.PRECISE


def test_a_prompt_that_cannot_be_compared_by_characters_is_missing() -> None:
    """Who goes by what was sent where is told when that cannot be known, unless by design."""
    by_memory = replace(SET, prefix=PrefixUse.APPROXIMATE)
    rig = PrefixRig(by_memory)
    rig.reader.characters_answer = NoBlocks(why="prompt_too_long")
    found = rig.sense(question(tenant="t"))
    assert (found.degraded, found.source) == (("prompt_too_long",), PrefixSource.NONE)
    rig.reader.characters_answer = NoBlocks(why="api", is_by_design=True)
    assert rig.sense(question(tenant="t")).degraded == ()


def test_what_engines_never_read_from_a_cache_is_warm_nowhere() -> None:
    """They compute such a prompt as a whole; nothing is missing, and nothing is remembered."""
    rig = PrefixRig(SET)
    rig.report(A, PROMPT)
    rig.reader.answer = NoBlocks(why="prompt_logprobs", is_by_design=True)
    rig.reader.characters_answer = rig.reader.answer
    found = rig.sense(question(tenant="t"))
    assert (found.degraded, dict(found.matches)) == ((), {})
