"""What the picker knows of caches, in numbers."""

from inferencecache.picker.prefix import PrefixFound
from inferencecache.picker.prefix.knowledge import PrefixKnowledge
from inferencecache.transport import picker_prefix_catalog as catalog
from inferencecache.transport.metric_cells import Counts, Family, LabelValues


class PrefixCounts:
    """Counts what Picks were told, and reads the rest at each scrape.

    Args:
        labels_max: Most workers that are shown by themselves.
    """

    def __init__(self, labels_max: int) -> None:
        self._labels_max = labels_max
        self._sensed = Counts()
        self._missing = Counts()

    def sensed(self, found: PrefixFound) -> None:
        """Count what one Pick was told."""
        self._sensed.add((found.source.value,))
        for why in found.degraded:
            self._missing.add((why,))

    def families(self, knowledge: PrefixKnowledge) -> list[Family]:
        """Return a copy of all numbers; workers beyond the bound are left out."""
        errors_tokens = knowledge.audit.errors_tokens()
        shown = set(list(errors_tokens)[: self._labels_max])
        trusts: dict[LabelValues, float] = {
            (endpoint, source.value): trust
            for endpoint, source, trust in knowledge.audit.trusts()
            if endpoint in shown
        }
        errors: dict[LabelValues, float] = {
            (name,): tokens for name, tokens in errors_tokens.items() if name in shown
        }
        return [
            Family(catalog.SENSED, self._sensed.rows()),
            Family(catalog.MISSING, self._missing.rows()),
            Family(catalog.STRETCHES, {(): knowledge.blocks.stretches}),
            Family(catalog.EVICTED, {(): knowledge.blocks.evicted}),
            Family(catalog.TRUST, trusts),
            Family(catalog.ERROR, errors),
        ]
