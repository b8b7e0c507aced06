"""Fleets whose destinations fail: who is picked, and what is told of how it went."""

from dataclasses import dataclass

from fleets import ChooserRig, fleet, provider, question, row, tier, worker_set

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.picker.choice import Choice
from inferencecache.picker.decisions import AbortReport, Ending, FirstTokenReport

WORKERS = worker_set("local", row("m"), addresses=["a:1", "b:1"])
VENDOR = provider("vendor", row("gpt", "m"), row("other"))
SIBLING = provider("sibling", row("m"))


@dataclass
class Fleeting:
    """A rig in which every request is reported about at once."""

    rig: ChooserRig

    def status(self, choice: Choice, status: int) -> None:
        """Report the status of an answer."""
        assert choice.follower is not None
        report = FirstTokenReport(observed_ttft_ms=1, upstream_status=status)
        choice.follower.first_token(report)

    def abort(self, choice: Choice, reason: str) -> None:
        """Abort."""
        assert choice.follower is not None
        choice.follower.ended(Ending.ABORTED, AbortReport(reason=reason, detail=""))

    def fail(self, times: int, status: int = 503, model: str = "m") -> list[str]:
        """Let so many requests fail, a second apart; return where they went."""
        names = []
        for _ in range(times):
            self.rig.clock.advance_ns(NS_PER_MS)
            choice = self.rig.chosen(question(model))
            self.rig.clock.advance_ns(NS_PER_MS)
            self.status(choice, status)
            names.append(choice.name)
        return names

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.rig.clock.advance_ns(round(seconds * NS_PER_S))


def local_only(*addresses: str) -> Fleeting:
    """Return workers and nothing else."""
    members = worker_set("local", row("m"), addresses=addresses or ("a:1",))
    return Fleeting(ChooserRig(fleet(tier("t", members))))


def vendors() -> Fleeting:
    """Return two providers, of which the first is tried first."""
    return Fleeting(ChooserRig(fleet(tier("one", VENDOR), tier("two", SIBLING))))
