"""What claims about caches are worth: claimed tokens against those that engines report as cached.

Theory of operation: per worker and source a share of the claim comes true, smoothed over reports.
It scales later claims, so a worker whose cache is empty while the index says otherwise is believed
less with every request, and more again with every one that finds what was claimed. Each source
has its own trust: a wrong index says nothing against what the picker remembers itself.

Worked example, a step of 0.1: an engine is restarted and the index does not know. After 22 requests
that find nothing the trust is 0.9 ** 22 = 0.098, below the least of 0.1, and counts as none.

A worker that holds what nobody claims is a matter of its own: where this is so for all workers of a
set, the picker hashes prompts in another way than its engines do.
"""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

from inferencecache.picker.prefix.signal import PrefixSource
from inferencecache.settings.picker_prefix import PickerPrefixSettings


class _Record:
    """What is known of one worker.

    Attributes:
        trust: By source, the share of its claims that comes true.
        agreement: The share that index and engine agree on, of the larger of both.
        compared: Reports that went into the agreement.
        error_tokens: How many more tokens were cached than expected, smoothed.
    """

    __slots__ = ("agreement", "compared", "error_tokens", "trust")

    def __init__(self) -> None:
        self.trust: dict[PrefixSource, float] = {}
        self.agreement = 1.0
        self.compared = 0
        self.error_tokens = 0.0


class CacheAudit:
    """Keeps what claims are worth, by worker.

    Args:
        settings: How fast it learns.

    Attributes:
        doubted: Those whose claims do not all come true; of any other each is believed.
    """

    def __init__(self, settings: PickerPrefixSettings) -> None:
        self._step = settings.trust_step
        self._trust_min = settings.trust_min
        self._slack_tokens = settings.slack_tokens
        self._suspect_reports = settings.suspect_reports
        self._suspect_agreement = settings.suspect_agreement
        self._records: dict[str, _Record] = {}
        self.doubted: set[str] = set()

    def trust(self, endpoint: str, source: PrefixSource) -> float:
        """Return which share of a claim of *source* about *endpoint* to believe, 0 to 1."""
        record = self._records.get(endpoint)
        if record is None:
            return 1.0
        trust = record.trust.get(source, 1.0)
        return trust if trust >= self._trust_min else 0.0

    def claimed(
        self, endpoint: str, source: PrefixSource, claim_tokens: int, cached_tokens: int
    ) -> None:
        """Learn how much of a claim was true.

        Args:
            endpoint: Of whom.
            source: Who claimed it.
            claim_tokens: As claimed, before any trust; 0 claims nothing and is no evidence.
            cached_tokens: As the engine reports.
        """
        if claim_tokens <= self._slack_tokens:
            return
        share = self._share(claim_tokens, cached_tokens)
        trusts = self._record(endpoint).trust
        before = trusts.get(source, 1.0)
        after = trusts[source] = before + self._step * (share - before)
        if after != 1.0:
            self.doubted.add(endpoint)

    def compared(self, endpoint: str, claim_tokens: int, cached_tokens: int) -> None:
        """Learn how far the index agrees with an engine about a prompt.

        Args:
            endpoint: The engine.
            claim_tokens: What the index says of it.
            cached_tokens: As it reports.
        """
        larger = max(claim_tokens, cached_tokens)
        if larger <= self._slack_tokens:
            return
        record = self._record(endpoint)
        share = self._share(larger, min(claim_tokens, cached_tokens))
        record.agreement += self._step * (share - record.agreement)
        record.compared += 1

    def expected(self, endpoint: str, expected_tokens: int, cached_tokens: int) -> None:
        """Learn how far off the whole signal was.

        Args:
            endpoint: Of whom.
            expected_tokens: What the Pick went by.
            cached_tokens: As the engine reports.
        """
        record = self._record(endpoint)
        error_tokens = cached_tokens - expected_tokens
        record.error_tokens += self._step * (error_tokens - record.error_tokens)

    def is_suspect(self, endpoints: Iterable[str]) -> bool:
        """Return whether every one of *endpoints* that was compared often disagrees with the index.

        Complexity: O(endpoints).
        """
        found = [self._records.get(name) for name in endpoints]
        heard = [each for each in found if each and each.compared >= self._suspect_reports]
        return bool(heard) and all(each.agreement < self._suspect_agreement for each in heard)

    def trusts(self) -> Iterator[tuple[str, PrefixSource, float]]:
        """Yield worker, source and trust, as learnt."""
        for endpoint, record in self._records.items():
            for source, trust in record.trust.items():
                yield endpoint, source, trust

    def errors_tokens(self) -> dict[str, float]:
        """Return how many more tokens were cached than expected, smoothed, by worker."""
        return {endpoint: record.error_tokens for endpoint, record in self._records.items()}

    def retain(self, endpoints: AbstractSet[str]) -> None:
        """Forget all but *endpoints*."""
        for endpoint in [name for name in self._records if name not in endpoints]:
            del self._records[endpoint]
        self.doubted.intersection_update(endpoints)

    def _share(self, tokens: int, found_tokens: int) -> float:
        """Return how much of *tokens* was found; engines round to blocks, which is as good."""
        return 1.0 if found_tokens + self._slack_tokens >= tokens else found_tokens / tokens

    def _record(self, endpoint: str) -> _Record:
        return self._records.setdefault(endpoint, _Record())
