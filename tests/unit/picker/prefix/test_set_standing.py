"""What is said of worker sets that the index does not know."""

from dataclasses import replace

import pytest
from fleets import provider, row, worker_set
from prefix_rig import PrefixRig, tokens

from inferencecache.clock import NS_PER_S
from inferencecache.picker.fleet import PrefixUse, Qualifier
from inferencecache.picker.prefix.sightings import Sightings

SET = replace(worker_set("w", row("m"), addresses=["a:1", "b:1"]), block_size_tokens=16)
PLAIN = worker_set("p", row("m"), addresses=["c:1"])


def test_a_set_is_cold_until_one_of_its_workers_is_heard_of() -> None:
    """By whatever it says, and whoever of them it is."""
    rig = PrefixRig(SET)
    standing = rig.knowledge.standing
    assert list(standing.qualifiers_of(SET)) == [Qualifier.INDEX_COLD]
    rig.report("b:1", tokens(16), tenant_id="whoever", model_id="whatever")
    assert list(standing.qualifiers_of(SET)) == []


@pytest.mark.parametrize("use", [PrefixUse.APPROXIMATE, PrefixUse.NONE])
def test_a_set_that_does_not_go_by_the_index_is_not_cold(use: PrefixUse) -> None:
    """Nothing is missing."""
    members = replace(SET, prefix=use)
    assert list(PrefixRig(members).knowledge.standing.qualifiers_of(members)) == []


def test_nothing_is_said_of_others() -> None:
    """Of a set that says nothing itself, and of providers."""
    vendor = provider("v", row("m"))
    standing = PrefixRig(PLAIN, vendor).knowledge.standing
    assert list(standing.qualifiers_of(PLAIN)) == list(standing.qualifiers_of(vendor)) == []


def test_a_set_whose_tokenizer_cannot_be_read_says_so() -> None:
    """As whoever reads it knows."""
    rig = PrefixRig(SET)
    rig.lacking.add("w")
    said = list(rig.knowledge.standing.qualifiers_of(SET))
    assert said == [Qualifier.INDEX_COLD, Qualifier.TOKENIZER_MISSING]


def test_workers_that_nobody_hears_of_are_told_once() -> None:
    """After a minute, and only those of sets that go by the index."""
    rig = PrefixRig(SET, PLAIN)
    rig.report("b:1", tokens(16))
    rig.clock.advance_ns(60 * NS_PER_S - 1)
    assert rig.knowledge.overdue() == []
    rig.clock.advance_ns(1)
    assert rig.knowledge.overdue() == [(SET, ["a:1"])]
    rig.clock.advance_ns(60 * NS_PER_S)
    assert rig.knowledge.overdue() == []


def test_a_worker_has_its_minute_from_when_it_came() -> None:
    """A reload does not start it anew for the others."""
    rig = PrefixRig(replace(SET, endpoints=SET.endpoints[:1]))
    rig.clock.advance_ns(40 * NS_PER_S)
    rig.knowledge.adopt([SET])
    rig.clock.advance_ns(20 * NS_PER_S)
    assert rig.knowledge.overdue() == [(SET, ["a:1"])]
    rig.clock.advance_ns(40 * NS_PER_S)
    assert rig.knowledge.overdue() == [(SET, ["b:1"])]


def test_sightings_are_bounded() -> None:
    """Whoever was heard of first is forgotten."""
    sightings = Sightings(2)
    for now_ns, name in enumerate(["a", "b", "a", "c"]):
        sightings.saw(name, now_ns)
    assert dict(sightings.seen_ns) == {"b": 1, "c": 3}
