"""A prefix signal on an index here, and a reader of prompts that says what it is told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import structs

from inferencecache.clock import NS_PER_S, ManualClock
from inferencecache.fingerprint import chain
from inferencecache.index import PrefixIndex, StateUpdate
from inferencecache.picker.choice import Question
from inferencecache.picker.decisions import (
    AbortReport,
    DecisionFollower,
    Ending,
    FinalTokenReport,
    FirstTokenReport,
)
from inferencecache.picker.destination import LocalDestination
from inferencecache.picker.fleet import Candidate, Member, ModelRow, Provider, WorkerSet
from inferencecache.picker.prefix import CandidateMatch, PrefixFound
from inferencecache.picker.prefix.index_source import IndexFound, IndexQuestion, IndexSource
from inferencecache.picker.prefix.knowledge import PrefixKnowledge, PrefixKnowledgeParts
from inferencecache.picker.prefix.sightings import Sightings
from inferencecache.picker.prompt.blocks import NoBlocks, PromptBlocks
from inferencecache.policy import PolicyStore
from inferencecache.service import CachePlane, PlaneParts
from inferencecache.service.index_matches import IndexMatches
from inferencecache.settings.index import IndexSettings
from inferencecache.settings.lookup import LookupSettings
from inferencecache.settings.picker_prefix import PickerPrefixSettings
from inferencecache.settings.policy import PolicySettings
from inferencecache.transport.picker_index import IndexHere
from inferencecache.types import CacheTier

BLOCK = 16
CHARS = NoBlocks(why="api", is_by_design=True)


def tokens(count: int, first: int = 0) -> list[int]:
    """Return a prompt of token ids."""
    return list(range(first, first + count))


def exact(token_ids: Sequence[int], cut: str = "", block_tokens: int = BLOCK) -> PromptBlocks:
    """Return the blocks of a prompt of known tokens."""
    return PromptBlocks(
        hashes=b"".join(chain(token_ids, block_tokens)),
        block_tokens=block_tokens,
        prompt_tokens=len(token_ids),
        is_exact=True,
        cut=cut,
    )


@dataclass
class ToldReader:
    """Says of every prompt what it was told.

    Attributes:
        answer: As blocks of tokens.
        characters_answer: As blocks of characters.
        by_set: What it says to single sets instead.
    """

    answer: PromptBlocks | NoBlocks
    characters_answer: PromptBlocks | NoBlocks = CHARS
    by_set: dict[str, PromptBlocks | NoBlocks] = field(default_factory=dict)

    async def blocks(
        self, _question: Question, worker_set: WorkerSet, _row: ModelRow
    ) -> PromptBlocks | NoBlocks:
        """Return what it was told."""
        return self.by_set.get(worker_set.key.name, self.answer)

    async def characters(self, _question: Question, _row: ModelRow) -> PromptBlocks | NoBlocks:
        """Return what it was told."""
        return self.characters_answer


@dataclass
class ToldIndex:
    """Answers what it was told, and keeps what it was asked."""

    answer: IndexFound
    hears_replicas: bool = True
    asked: list[IndexQuestion] = field(default_factory=list)

    async def match(self, question: IndexQuestion) -> IndexFound:
        """Return what it was told."""
        self.asked.append(question)
        return self.answer


def candidates_of(*members: Member) -> list[Candidate]:
    """Return everybody in *members*, each for its first model."""
    found: list[Candidate] = []
    for member in members:
        row = member.models[0]
        if isinstance(member, Provider):
            continue
        found += [
            Candidate(
                member=member,
                endpoint=endpoint,
                model=row,
                destination=LocalDestination(endpoint=endpoint.address),
            )
            for endpoint in member.endpoints
        ]
    return found


class PrefixRig:
    """A signal, the index that it asks, and a clock that stands still.

    Args:
        members: The fleet.
        settings: Its limits.
        index: Another index than that of this process.
        has_index: Whether there is any.
        is_named: Whether somebody has said which index to ask.
        lookup: How long a prompt may be.
        entries_max: How much the index holds.
        clock: The time, if another than one that stands still until it is told.
    """

    def __init__(
        self,
        *members: Member,
        settings: PickerPrefixSettings | None = None,
        index: IndexSource | None = None,
        has_index: bool = True,
        is_named: bool = False,
        lookup: LookupSettings | None = None,
        entries_max: int = IndexSettings().entries_max,
        clock: ManualClock | None = None,
    ) -> None:
        self.members = members
        self.clock = clock or ManualClock(1_000 * NS_PER_S)
        self.settings = settings or PickerPrefixSettings()
        self.sightings = Sightings(self.settings.replicas_max)
        policies = PolicyStore(PolicySettings(), default_ttl_ns=IndexSettings().ttl_ns)
        lookup = lookup or LookupSettings()
        self.plane = CachePlane(
            PlaneParts(
                index=PrefixIndex(IndexSettings(entries_max=entries_max), policies),
                policies=policies,
                clock=self.clock,
                replicas=self.sightings,
            )
        )
        matches = IndexMatches(self.plane.index, self.clock, lookup)
        here = IndexHere(matches, self.clock, lookup.waiting_max)
        self.reader = ToldReader(exact(tokens(640)))
        self.lacking: set[str] = set()
        self.knowledge = PrefixKnowledge(
            PrefixKnowledgeParts(
                settings=self.settings,
                clock=self.clock,
                reader=self.reader,
                index=(index or here) if has_index else None,
                is_index_named=is_named,
                sightings=self.sightings,
                lacks_tokenizer=lambda found: found.key.name in self.lacking,
                credit=matches.credit,
            )
        )
        self.knowledge.adopt(members)

    def report(
        self,
        replica_id: str,
        token_ids: Sequence[int],
        *,
        tenant_id: str = "t",
        model_id: str = "m",
        hash_scheme: str = "vllm",
        adapter_id: str = "",
        tier: CacheTier = CacheTier.T1,
    ) -> None:
        """Let a replica say that it holds a prompt."""
        hashes = chain(token_ids, BLOCK)
        update = StateUpdate(
            tenant_id=tenant_id,
            model_id=model_id,
            replica_id=replica_id,
            hash_scheme=hash_scheme,
            adapter_id=adapter_id,
        )
        update.add_chain(hashes, [BLOCK] * len(hashes), tier=tier)
        update.close()
        self.plane.report(update)

    def sense(self, asked: Question, candidates: Sequence[Candidate] | None = None) -> PrefixFound:
        """Return the answer of a signal that waits for nothing."""
        everybody = candidates_of(*self.members) if candidates is None else candidates
        steps = self.knowledge.signal.sense(asked, everybody)
        try:
            steps.send(None)
        except StopIteration as done:
            return done.value
        raise AssertionError("somebody waits")

    def tokens_of(self, asked: Question) -> dict[str, int]:
        """Return who has how many tokens."""
        return matched(self.sense(asked).matches)

    def place(
        self, asked: Question, address: str, expected_ttft_ms: float = 100.0
    ) -> DecisionFollower:
        """Ask, and send the request to the worker at *address*."""
        found = self.sense(asked)
        assert found.trace is not None
        candidate = next(each for each in candidates_of(*self.members) if each.name == address)
        follower = found.trace.placed(candidate, expected_ttft_ms)
        assert follower is not None
        return follower


def matched(matches: Mapping[str, CandidateMatch]) -> dict[str, int]:
    """Return the tokens alone."""
    return {name: match.matched_tokens for name, match in matches.items()}


def first(status: int = 200) -> FirstTokenReport:
    """Return a report of a first token."""
    return FirstTokenReport(observed_ttft_ms=50, upstream_status=status)


def final(cached: int | None, prompt: int = 640) -> FinalTokenReport:
    """Return a report of a final token."""
    return FinalTokenReport(
        model="m",
        prompt_tokens=prompt,
        completion_tokens=10,
        cached_tokens=cached,
        itl_bucket_counts=(),
        itl_bucket_layout=1,
    )


def finish(follower: DecisionFollower, cached: int | None, status: int = 200) -> None:
    """Let a request come to its end."""
    follower.first_token(first(status))
    follower.ended(Ending.FINISHED, final(cached))


def abort(follower: DecisionFollower) -> None:
    """Let a caller say that it will not send a request."""
    follower.ended(Ending.ABORTED, AbortReport(reason="NOT_DISPATCHED", detail=""))


def salted(asked: Question) -> Question:
    """Return *asked* with a salt."""
    affinity = structs.replace(asked.request.affinity, cache_salt="pepper")
    request = structs.replace(asked.request, affinity=affinity)
    return structs.replace(asked, request=request)
