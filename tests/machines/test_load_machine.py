"""Any order of placings, reports, aborts and time: load is what the open requests say, and ends."""

from fleets import worker_set
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from reports import ABORT, FIRST

from inferencecache.clock import NS_PER_S, ManualClock
from inferencecache.picker.decisions import Ending
from inferencecache.picker.load import CandidateLoad, LoadShare, LoadTable
from inferencecache.settings.picker_load import PickerLoadSettings

NAMES = [endpoint.address for endpoint in worker_set("s", addresses=["a:1", "b:1"]).endpoints]
TOKENS = st.integers(min_value=-5, max_value=100_000)
AGE_MAX_NS = 60 * NS_PER_S
SETTINGS = PickerLoadSettings(age_samples_min=3, age_samples_max=5, age_min_ns=2 * NS_PER_S)


class Placed:
    """A request as the model remembers it.

    Args:
        share: What follows it.
        name: Where it went.
        tokens: Of its prompt, and of its answer.
        at_ns: When it was placed.
    """

    def __init__(self, share: LoadShare, name: str, tokens: tuple[int, int], at_ns: int) -> None:
        self.share = share
        self.name = name
        self.prefill, self.decode = (max(0, count) for count in tokens)
        self.at_ns = at_ns
        self.is_over = False


class LoadMachine(RuleBasedStateMachine):
    """Compares loads with a plain list of requests after every step."""

    @initialize()
    def begin(self) -> None:
        """Begin with nothing."""
        self.clock = ManualClock(0)
        self.table = LoadTable(SETTINGS, AGE_MAX_NS, self.clock)
        self.requests: list[Placed] = []
        self.durations: list[int] = []

    @rule(name=st.sampled_from(NAMES), prefill=TOKENS, decode=TOKENS)
    def place(self, name: str, prefill: int, decode: int) -> None:
        """Give a candidate a request."""
        self.age()
        share = self.table.place(name, prefill, decode)
        at_ns = self.clock.monotonic_ns()
        self.requests.append(Placed(share, name, (prefill, decode), at_ns))

    @rule(data=st.data())
    def first_token(self, data: st.DataObject) -> None:
        """Report a first token, perhaps again, perhaps behind the end."""
        request = self.drawn(data)
        if request is not None:
            request.share.first_token(FIRST)
            request.prefill = 0

    @rule(data=st.data(), ending=st.sampled_from(list(Ending)))
    def end(self, data: st.DataObject, ending: Ending) -> None:
        """End a request; a decision has one end, but its age may have come before."""
        request = self.drawn(data)
        if request is None:
            return
        self.requests.remove(request)
        if ending is Ending.FINISHED:
            self.durations.append(self.clock.monotonic_ns() - request.at_ns)
        request.share.ended(ending, ABORT if ending is Ending.ABORTED else None)

    @rule(seconds=st.integers(0, 40))
    def wait(self, seconds: int) -> None:
        """Let time go by, as the picker's tick does."""
        self.clock.advance_ns(seconds * NS_PER_S)
        self.table.expire(self.clock.monotonic_ns())
        self.age()

    def drawn(self, data: st.DataObject) -> Placed | None:
        """Return one of the requests whose decision has not ended."""
        return data.draw(st.sampled_from(self.requests)) if self.requests else None

    def age(self) -> None:
        """Let requests go that are too old, those that came first."""
        limit_ns = AGE_MAX_NS
        recent = sorted(self.durations[-SETTINGS.age_samples_max :])
        if len(recent) >= SETTINGS.age_samples_min:
            limit_ns = min(AGE_MAX_NS, max(SETTINGS.age_min_ns, 2 * recent[-1]))
        for request in self.requests:
            if self.clock.monotonic_ns() - request.at_ns >= limit_ns:
                request.is_over = True

    @invariant()
    def loads_are_the_sums(self) -> None:
        """Of what is open, and never below zero."""
        for name in NAMES:
            open_ = [each for each in self.requests if each.name == name and not each.is_over]
            assert self.table.of(name) == CandidateLoad(
                len(open_),
                sum(each.prefill for each in open_),
                sum(each.decode for each in open_),
            )
        assert len(self.table) == sum(not each.is_over for each in self.requests)

    def teardown(self) -> None:
        """End at zero, whatever is still open."""
        for request in getattr(self, "requests", []):
            request.share.ended(Ending.STOPPED, None)
        if hasattr(self, "table"):
            assert (len(self.table), dict(self.table)) == (0, {})


LoadMachine.TestCase.settings = hypothesis_settings(
    max_examples=60, stateful_step_count=60, deadline=None
)
TestLoad = LoadMachine.TestCase
