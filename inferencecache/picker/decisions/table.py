"""All decisions of one server, from Pick until nobody can say anything about them any more.

Rules of this file: a request is in flight from its Pick to its one ending, whichever comes first of
the final report, an Abort and the end of its time; the first report of each kind counts, later ones
change nothing; a final report may overtake the first token, which counts all the same as long as
the decision is remembered; a decision whose body is being pulled does not expire; where there are
too many, those that have ended go first.
"""

from collections import OrderedDict

from inferencecache.picker.bodies import Body, BodyState, BodyStore, NewId
from inferencecache.picker.bodies.deadlines import Deadlines
from inferencecache.picker.bodies.ids import fresh_id
from inferencecache.picker.decisions.decision import Decision, DecisionFacts, Ending
from inferencecache.picker.decisions.following import DecisionFollower
from inferencecache.picker.decisions.in_flight import InFlight
from inferencecache.picker.decisions.reports import AbortReport, FinalTokenReport, FirstTokenReport
from inferencecache.picker.faults import UnknownIdError
from inferencecache.settings.picker import PickerSettings


class DecisionTable:
    """Keeps decisions by response_id.

    Args:
        settings: How many, and for how long.
        bodies: Where their bodies are kept.
        new_id: Draws ids.

    Attributes:
        in_flight: Requests in flight by destination.
        expired: Decisions that heard nothing for too long.
    """

    def __init__(
        self,
        settings: PickerSettings,
        bodies: BodyStore,
        new_id: NewId,
    ) -> None:
        self._settings = settings
        self._bodies = bodies
        self._new_id = new_id
        self._decisions: OrderedDict[int, Decision] = OrderedDict()
        self._finished: OrderedDict[int, Decision] = OrderedDict()
        self._followers: dict[int, DecisionFollower] = {}
        self._deadlines = Deadlines()
        self.in_flight = InFlight()
        self.expired = 0

    def __len__(self) -> int:
        """Return how many decisions are remembered."""
        return len(self._decisions)

    def add(
        self,
        facts: DecisionFacts,
        body: Body,
        now_ns: int,
        follower: DecisionFollower | None = None,
    ) -> Decision:
        """Remember a decision about a picked body; at the cap another one is forgotten.

        That is the one whose answer has been complete for longest, or else the oldest one.

        Args:
            facts: What was decided.
            body: What PullBody will hand out.
            now_ns: Monotonic time.
            follower: Told how this one goes on.
        """
        self.expire(now_ns)
        if len(self._decisions) >= self._settings.decisions_max:
            given_up = next(iter((self._finished or self._decisions).values()))
            self._forget(given_up)
            self._end(given_up, Ending.EVICTED)
        decision = Decision(fresh_id(self._new_id, self._decisions), facts, body)
        self._decisions[decision.response_id] = decision
        self._deadlines.set(decision.response_id, now_ns + self._settings.decision_ttl_ns)
        if follower is not None:
            self._followers[decision.response_id] = follower
        self.in_flight.begin(facts.destination)
        return decision

    def pull(self, response_id: int, now_ns: int) -> Body:
        """Hand out the body of a decision, once.

        Raises:
            UnknownIdError: There is no such decision, or its body was given out or is gone.
        """
        decision = self._find(response_id, now_ns)
        if decision is None:
            raise UnknownIdError("response_id")
        self._bodies.pull(decision.body, now_ns)
        return decision.body

    def first_token(self, response_id: int, report: FirstTokenReport, now_ns: int) -> bool:
        """Note that the destination has begun to answer.

        Returns:
            Whether this was the first to say so about a decision that is known.
        """
        decision = self._find(response_id, now_ns)
        if decision is None or decision.has_first_token:
            return False
        decision.has_first_token = True
        if decision.ending is None:
            self._deadlines.set(response_id, now_ns + self._settings.decision_ttl_ns)
        follower = self._follower_of(decision)
        if follower is not None:
            follower.first_token(report)
        return True

    def prompt_tokens_max(self, response_id: int) -> int | None:
        """Return the most tokens that the prompt of a decision can have; None if it is unknown.

        No token of a text is shorter than a byte, but not all of a prompt stands in its body.
        """
        decision = self._decisions.get(response_id)
        if decision is None:
            return None
        return decision.facts.total_bytes + self._settings.prompt_tokens_beyond_body_max

    def final_token(self, response_id: int, report: FinalTokenReport, now_ns: int) -> bool:
        """Note that the answer is complete.

        Returns:
            Whether this was the first to say so about a decision that is known.
        """
        decision = self._find(response_id, now_ns)
        if decision is None or decision.ending is not None:
            return False
        self._deadlines.set(response_id, now_ns + self._settings.ended_ttl_ns)
        self._end(decision, Ending.FINISHED, report)
        self._finished[response_id] = decision
        return True

    def abort(self, response_id: int, report: AbortReport, now_ns: int) -> bool:
        """Forget a decision and let its body go.

        Returns:
            Whether there was anything left: a request in flight, or a body.
        """
        decision = self._find(response_id, now_ns)
        if decision is None:
            return False
        self._forget(decision)
        self._bodies.expire(now_ns)
        had_body = self._bodies.release(decision.body)
        return self._end(decision, Ending.ABORTED, report) or had_body

    def expire(self, now_ns: int) -> None:
        """End what has heard nothing for too long."""
        for response_id in self._deadlines.due(now_ns):
            decision = self._decisions[response_id]
            if decision.body.state is BodyState.PULLED:
                self._deadlines.set(response_id, now_ns + self._settings.decision_ttl_ns)
                continue
            self.expired += decision.ending is None
            self._forget(decision)
            self._end(decision, Ending.EXPIRED)

    def stop(self) -> None:
        """End everything that has not ended, for a server that does."""
        for decision in list(self._decisions.values()):
            self._forget(decision)
            self._end(decision, Ending.STOPPED)

    def _find(self, response_id: int, now_ns: int) -> Decision | None:
        self.expire(now_ns)
        return self._decisions.get(response_id)

    def _forget(self, decision: Decision) -> None:
        del self._decisions[decision.response_id]
        self._deadlines.drop(decision.response_id)
        self._finished.pop(decision.response_id, None)
        if decision.ending is not None:
            self._followers.pop(decision.response_id, None)

    def _follower_of(self, decision: Decision) -> DecisionFollower | None:
        """Return who is told of *decision*; for the last time once nothing can follow."""
        awaits_first_token = decision.ending is Ending.FINISHED and not decision.has_first_token
        if decision.ending is None or awaits_first_token:
            return self._followers.get(decision.response_id)
        return self._followers.pop(decision.response_id, None)

    def _end(
        self,
        decision: Decision,
        ending: Ending,
        report: FinalTokenReport | AbortReport | None = None,
    ) -> bool:
        """End *decision* unless it has ended; bodies that nobody pulls any more go with it."""
        if ending is not Ending.FINISHED and decision.body.state is BodyState.PICKED:
            self._bodies.release(decision.body)
        if decision.ending is not None:
            return False
        decision.ending = ending
        self.in_flight.end(decision.facts.destination)
        follower = self._follower_of(decision)
        if follower is not None:
            follower.ended(ending, report)
        return True
