"""What a mapper has to hold after stores in any order, kept as simply as possible.

For engine blocks that are each one index block or several; smaller ones share keys.
"""

from dataclasses import dataclass, field

Tokens = tuple[int, ...]


@dataclass
class WaitingStore:
    """A store without a known parent, and which of its blocks were removed meanwhile."""

    labels: list[int]
    tokens: list[Tokens]
    parent: int
    deadline: int
    removed: list[int] = field(default_factory=list)


@dataclass
class PlacedBlock:
    """A block's tokens from the prompt's start, and its copies."""

    path: Tokens
    copies: int = 1


class NaiveOrphans:
    """Blocks by label, waiting stores by age, and totals."""

    def __init__(self, hold: int) -> None:
        self.hold = hold
        self.blocks: dict[int, PlacedBlock] = {}
        self.waiting: list[WaitingStore] = []
        self.totals = {"orphaned": 0, "resolved": 0, "given_up": 0, "unknown": 0}
        self.drops: dict[str, int] = {}

    @property
    def waiting_blocks(self) -> int:
        """Blocks of all waiting stores."""
        return sum(len(store.labels) for store in self.waiting)

    def expire(self, now: int) -> None:
        """Give up what has waited its time."""
        over = [store for store in self.waiting if store.deadline <= now]
        self.waiting = [store for store in self.waiting if store.deadline > now]
        self.totals["given_up"] += sum(len(store.labels) for store in over)

    def store(self, labels: list[int], tokens: list[Tokens], parent: int | None, now: int) -> None:
        """Place a store and all that waited for it, or let it wait, or refuse it."""
        if len(set(labels)) < len(labels):
            self._drop("repeated_hash")
        elif parent in labels:
            self._drop("self_parent")
        elif parent is None or parent in self.blocks:
            self._place(labels, tokens, parent)
            self._adopt(labels)
        else:
            self.waiting.append(WaitingStore(labels, tokens, parent, now + self.hold))
            self.totals["orphaned"] += len(labels)

    def remove(self, label: int) -> None:
        """Take a copy away, from the oldest waiting store if none is placed."""
        block = self.blocks.get(label)
        if block is not None:
            block.copies -= 1
            if not block.copies:
                del self.blocks[label]
            return
        for store in self.waiting:
            if label in store.labels and label not in store.removed:
                store.removed.append(label)
                return
        self.totals["unknown"] += 1

    def clear(self) -> None:
        """Forget everything."""
        self.blocks, self.waiting = {}, []

    def _drop(self, cause: str) -> None:
        self.drops[cause] = self.drops.get(cause, 0) + 1

    def _place(self, labels: list[int], tokens: list[Tokens], parent: int | None) -> None:
        path = () if parent is None else self.blocks[parent].path
        for label, own in zip(labels, tokens, strict=True):
            path += own
            known = self.blocks.get(label)
            if known is not None and known.path == path:
                known.copies += 1
            else:
                self.blocks[label] = PlacedBlock(path)

    def _adopt(self, labels: list[int]) -> None:
        rows, removed = [labels], list[int]()
        while rows:
            parents = rows.pop(0)
            ready = [
                store for parent in parents for store in self.waiting if store.parent == parent
            ]
            self.waiting = [store for store in self.waiting if store not in ready]
            for store in ready:
                self._place(store.labels, store.tokens, store.parent)
                self.totals["resolved"] += len(store.labels)
                removed.extend(store.removed)
                rows.append(store.labels)
        for label in removed:
            self.remove(label)
