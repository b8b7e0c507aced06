"""Any order of picks, failures, good tokens, changes and time, against the history told again."""

from dataclasses import replace

from fleets import ToldSuppressions, provider, row, worker_set
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from plain_suppression import SECOND, PlainEvent, PlainSubject

from inferencecache.picker.choosing import FailureKind, Suppression
from inferencecache.picker.choosing.suppression import Standing
from inferencecache.picker.destination import LocalDestination, ProviderDestination
from inferencecache.picker.fleet import Candidate, Member
from inferencecache.settings.picker_choice import PickerSuppressionSettings

WORKERS = worker_set("local", row("m"), addresses=["a:1", "b:1"])
VENDOR = provider("vendor", row("gpt"), row("other"))
MEMBERS: dict[str, Member] = {"local": WORKERS, "vendor": VENDOR}
PLACES = st.sampled_from([("local", 0), ("local", 1), ("vendor", 0), ("vendor", 1)])
KINDS = st.sampled_from(list(FailureKind))
ORDER = ["suppressed", "resting", "probing", "due", "clear"]


class SuppressionMachine(RuleBasedStateMachine):
    """Compares standings after every step."""

    @initialize()
    def begin(self) -> None:
        """Begin with two members."""
        self.now = 1_000 * SECOND
        self.jitter = 0.0
        self.told = ToldSuppressions()
        settings = PickerSuppressionSettings()
        self.real = Suppression(settings, lambda: self.jitter, self.told)
        self.members = dict(MEMBERS)
        self.plain: dict[tuple[str, str], PlainSubject] = {}
        self.picks: list[tuple[Candidate, tuple[str, int], int, str]] = []
        self.trying: list[tuple[Candidate, tuple[str, int], int]] = []
        self.real.adopt(self.members.values())

    def candidate(self, place: tuple[str, int]) -> Candidate:
        """Return a place as the fleet in force has it."""
        member = self.members[place[0]]
        if place[0] == "local":
            assert hasattr(member, "endpoints")
            endpoint = member.endpoints[place[1]]
            destination = LocalDestination(endpoint=endpoint.address)
            return Candidate(
                member=member, endpoint=endpoint, model=member.models[0], destination=destination
            )
        return Candidate(
            member=member,
            endpoint=None,
            model=member.models[place[1]],
            destination=ProviderDestination(namespace="default", backend="vendor"),
        )

    @staticmethod
    def subjects(place: tuple[str, int]) -> list[tuple[str, str]]:
        """Return whom a place depends on: itself, and the provider as a whole."""
        name, number = place
        itself = (name, str(number))
        return [itself] if name == "local" else [(name, ""), itself]

    def standing(self, place: tuple[str, int]) -> str:
        """Return the worst standing of whom a place depends on."""
        standings = [
            self.plain[subject].standing(self.now)
            for subject in self.subjects(place)
            if subject in self.plain
        ]
        return min([*standings, "clear"], key=ORDER.index)

    @rule(place=PLACES, jumps=st.booleans())
    def pick(self, place: tuple[str, int], *, jumps: bool) -> None:
        """Give a place a request, as somebody in panic would also do."""
        candidate = self.candidate(place)
        for subject in self.subjects(place):
            plain = self.plain.get(subject)
            if plain is not None and plain.standing(self.now) == "due":
                plain.events.append(PlainEvent("tried", self.now))
        if self.real.picked(candidate, self.now):
            self.trying.append((candidate, place, self.now))
        self.picks.append((candidate, place, self.now, candidate.member.generation))
        self.now += SECOND if jumps else 0

    @rule(number=st.integers(0, 30), kind=KINDS, jitter=st.floats(-1, 1))
    def fail(self, number: int, kind: FailureKind, jitter: float) -> None:
        """Let one of the last requests fail."""
        if not self.picks:
            return
        candidate, place, picked, generation = self.picks[-1 - number % len(self.picks)]
        if candidate.endpoint is not None and kind in _BACKEND:
            return
        self.jitter = jitter
        self.real.failed(candidate, kind, picked, self.now)
        if generation != self.members[place[0]].generation:
            return
        is_whole = place[0] == "vendor" and kind in _BACKEND
        subject = (place[0], "" if is_whole else str(place[1]))
        self.plain.setdefault(subject, PlainSubject()).events.append(
            PlainEvent(kind.value, self.now, picked, jitter)
        )

    @rule(place=PLACES, kind=KINDS, jitter=st.floats(-1, 1), is_late=st.booleans())
    def fail_often(
        self, place: tuple[str, int], kind: FailureKind, jitter: float, *, is_late: bool
    ) -> None:
        """Let three requests in a row fail, which single steps seldom do, and one more at once."""
        for _ in range(3):
            self.pick(place, jumps=False)
            self.now += 1
            self.fail(0, kind, jitter)
        self.pick(place, jumps=is_late)
        self.fail(0, kind, jitter)

    @rule(number=st.integers(0, 30))
    def work(self, number: int) -> None:
        """Let one of the last requests have a good token."""
        if not self.picks:
            return
        candidate, place, _, generation = self.picks[-1 - number % len(self.picks)]
        self.real.worked(candidate)
        if generation == self.members[place[0]].generation:
            for subject in self.subjects(place):
                self.plain.pop(subject, None)

    @rule(number=st.integers(0, 3))
    def let_go(self, number: int) -> None:
        """Let one of those that try a place, or have tried it, say nothing."""
        if not self.trying:
            return
        candidate, place, picked = self.trying.pop(-1 - number % len(self.trying))
        self.real.let_go(candidate, picked)
        for subject in self.subjects(place):
            if subject in self.plain:
                self.plain[subject].events.append(PlainEvent("untried", self.now, picked))

    @rule(name=st.sampled_from(["local", "vendor"]), changes=st.booleans())
    def adopt(self, name: str, *, changes: bool) -> None:
        """Load the members again, one of them changed or not."""
        if changes:
            member = self.members[name]
            self.members[name] = replace(member, generation=f"{member.generation}+")
            for subject in [subject for subject in self.plain if subject[0] == name]:
                del self.plain[subject]
        self.real.adopt(self.members.values())

    @rule(seconds=st.sampled_from([0.5, 1, 4, 5, 6, 29, 30, 299, 360]))
    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now += round(seconds * SECOND)

    @rule(name=st.sampled_from(["default/local", "provider:default/vendor"]))
    def lift(self, name: str) -> None:
        """Let an operator lift all of a member."""
        member = name.rpartition("/")[2]
        lifted = [subject for subject in self.plain if subject[0] == member]
        assert self.real.lift(name) == len(lifted)
        for subject in lifted:
            del self.plain[subject]

    @invariant()
    def everybody_stands_the_same(self) -> None:
        """And as many are remembered."""
        if not hasattr(self, "real"):
            return
        assert len(self.real) == len(self.plain)
        for place in (("local", 0), ("local", 1), ("vendor", 0), ("vendor", 1)):
            expected = self.standing(place)
            assert self.real.standing(self.candidate(place), self.now) is Standing(expected)
        whole = self.plain.get(("vendor", ""), PlainSubject())
        shown = {str(found) for found in self.real.qualifiers_of(self.members["vendor"])}
        assert shown - {"Suppressed"} == {_SHOWN[name] for name in whole.qualifiers}


_BACKEND = {FailureKind.UNRESOLVED, FailureKind.UNAUTHORIZED}
_SHOWN = {"unresolved": "BackendUnresolved", "unauthorized": "BackendUnauthorized"}

TestSuppression = SuppressionMachine.TestCase
TestSuppression.settings = hypothesis_settings(
    max_examples=150, stateful_step_count=60, deadline=None
)
