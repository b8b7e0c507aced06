"""What went where, told again from all placings: slow, plain, and without any order of its own."""

from dataclasses import dataclass, field


@dataclass
class PlainPlacing:
    """One placing.

    Attributes:
        endpoint: Where.
        keys: What.
        number: Its place in history.
    """

    endpoint: str
    keys: tuple[int, ...]
    number: int


@dataclass
class PlainStretch:
    """One stretch at one endpoint.

    Attributes:
        age: When it was last touched, and how deep it stands: what is evicted first is smallest.
        placed_ns: Time of the last placing.
        expected_ns: Latest end of what is expected.
        vouchers: Numbers of the placings that vouch for it.
    """

    age: tuple[int, int]
    placed_ns: int
    expected_ns: int
    vouchers: set[int] = field(default_factory=set)


@dataclass
class PlainPickedBlocks:
    """Remembers placings in a flat table.

    Attributes:
        shelf_max: Most stretches per endpoint.
        all_max: Most stretches of all.
        idle_ns: How long one is remembered.
    """

    shelf_max: int
    all_max: int
    idle_ns: int
    table: dict[tuple[str, int], PlainStretch] = field(default_factory=dict)
    last_of: dict[str, int] = field(default_factory=dict)
    number: int = 0

    def place(
        self, endpoint: str, keys: tuple[int, ...], now_ns: int, expected_ns: int
    ) -> PlainPlacing:
        """Note a placing."""
        self.number += 1
        keys = keys[: self.shelf_max]
        if keys:
            self.sweep(now_ns, endpoint)
        expected_ns = min(expected_ns, now_ns + self.idle_ns)
        for depth, key in enumerate(keys):
            found = self.table.get((endpoint, key))
            age = (self.number, -depth)
            if found is None:
                found = PlainStretch(age, now_ns, expected_ns)
                self.table[endpoint, key] = found
            found.age, found.placed_ns = age, now_ns
            found.expected_ns = max(found.expected_ns, expected_ns)
            found.vouchers.add(self.number)
        if keys:
            self.last_of[endpoint] = self.number
        while self._count(endpoint) > self.shelf_max:
            self._evict(endpoint)
        while len(self.table) > self.all_max:
            self._evict(min({name for name, _ in self.table}, key=self.last_of.__getitem__))
        return PlainPlacing(endpoint, keys, self.number)

    def withdraw(self, placing: PlainPlacing) -> None:
        """Take a placing back."""
        for key in placing.keys:
            found = self.table.get((placing.endpoint, key))
            if found is not None and placing.number in found.vouchers:
                found.vouchers.remove(placing.number)
                if not found.vouchers:
                    del self.table[placing.endpoint, key]

    def held(self, endpoint: str, keys: tuple[int, ...], now_ns: int, *, is_expected: bool) -> int:
        """Count leading keys one by one."""
        for count, key in enumerate(keys):
            found = self.table.get((endpoint, key))
            if found is None:
                return count
            if is_expected and found.expected_ns <= now_ns:
                return count
            if not is_expected and found.placed_ns <= now_ns - self.idle_ns:
                return count
        return len(keys)

    def sweep(self, now_ns: int, endpoint: str | None = None) -> None:
        """Forget what is idle, everywhere or at one endpoint."""
        for place, found in list(self.table.items()):
            if found.placed_ns <= now_ns - self.idle_ns and endpoint in {None, place[0]}:
                del self.table[place]

    def retain(self, endpoints: set[str]) -> None:
        """Forget all others."""
        for place in [place for place in self.table if place[0] not in endpoints]:
            del self.table[place]

    def _count(self, endpoint: str) -> int:
        return sum(name == endpoint for name, _ in self.table)

    def _evict(self, endpoint: str) -> None:
        places = [place for place in self.table if place[0] == endpoint]
        del self.table[min(places, key=lambda place: self.table[place].age)]
