"""Predicted time to the first token of engine workers: a fit per worker, held to that of its set.

A worker that has just come takes the prediction of its set; with reports of its own it leaves that
behind. A set without enough recent reports predicts nothing.
"""

from collections import OrderedDict
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from inferencecache.picker.fleet import ObjectName, PriorsForEngine
from inferencecache.picker.ttft.counted_time import counted_ms
from inferencecache.picker.ttft.estimate import prior_weights
from inferencecache.picker.ttft.fit import ForgettingFit, weighed
from inferencecache.picker.ttft.recent import RecentEvidence
from inferencecache.picker.ttft.situation import Features, Situation
from inferencecache.settings.picker_ttft import TtftSettings


@dataclass(slots=True)
class _SetModel:
    """What is known of a set.

    Attributes:
        fit: Of all its workers.
        evidence: How recent it is.
        priors: What was believed of it.
        start: The same, as weights to start from.
    """

    fit: ForgettingFit
    evidence: RecentEvidence
    priors: PriorsForEngine
    start: Features


class WorkerPredictor:
    """Learns and predicts for all workers.

    Args:
        settings: What counts as evidence, and how much of it is kept: of more workers than that the
            one unheard of longest goes first.
    """

    def __init__(self, settings: TtftSettings) -> None:
        self._settings = settings
        self._workers_max = settings.workers_max
        self._sets: OrderedDict[ObjectName, _SetModel] = OrderedDict()
        self._workers: OrderedDict[tuple[ObjectName, str], ForgettingFit] = OrderedDict()

    def __len__(self) -> int:
        """Return how many workers have a fit of their own."""
        return len(self._workers)

    def observe(  # noqa: PLR0913 - what was met, where, and how it went
        self,
        worker_set: ObjectName,
        endpoint: str,
        *,
        priors: PriorsForEngine,
        situation: Situation,
        observed_ms: float,
        now_ns: int,
    ) -> None:
        """Learn from the first token of one successful request.

        Args:
            worker_set: The endpoint's set.
            endpoint: Its name.
            priors: What is believed of the set before anything was observed.
            situation: What the request met when it was picked.
            observed_ms: How long its first token took, in milliseconds.
            now_ns: Monotonic time.

        Complexity: O(1).
        """
        time_ms = counted_ms(observed_ms, self._settings)
        features = situation.features()
        of_set = self._set_model(worker_set, priors)
        start = self._start(of_set, priors)
        of_set.fit.observe(features, time_ms, start, now_ns)
        of_set.evidence.add(now_ns)
        fit = self._worker_fit(worker_set, endpoint)
        fit.observe(features, time_ms, of_set.fit.weights(start), now_ns)

    def predict_ms(
        self,
        worker_set: ObjectName,
        endpoint: str,
        *,
        priors: PriorsForEngine,
        situation: Situation,
        now_ns: int,
    ) -> float | None:
        """Return the predicted milliseconds, or None where the set has too little evidence.

        Complexity: O(1).
        """
        of_set = self._sets.get(worker_set)
        if of_set is None or not of_set.evidence.is_enough(now_ns):
            return None
        features = situation.features()
        set_weights = of_set.fit.weights(self._start(of_set, priors))
        fit = self._workers.get((worker_set, endpoint))
        predicted_ms = (
            weighed(set_weights, features) if fit is None else fit.value(features, set_weights)
        )
        return counted_ms(predicted_ms, self._settings)

    def retain(self, endpoints: AbstractSet[str]) -> None:
        """Drop all endpoints but *endpoints*: whoever comes back is another one."""
        for key in [key for key in self._workers if key[1] not in endpoints]:
            del self._workers[key]

    def _start(self, of_set: _SetModel, priors: PriorsForEngine) -> Features:
        """Return what is believed of a set as weights; the same object until that changes."""
        if of_set.priors is not priors:
            of_set.priors = priors
            of_set.start = prior_weights(priors, self._settings)
        return of_set.start

    def _set_model(self, worker_set: ObjectName, priors: PriorsForEngine) -> _SetModel:
        model = self._sets.get(worker_set)
        if model is None:
            if len(self._sets) >= self._workers_max:
                self._sets.popitem(last=False)
            model = _SetModel(
                fit=self._new_fit(),
                evidence=RecentEvidence(self._settings.samples_min, self._settings.window_ns),
                priors=priors,
                start=prior_weights(priors, self._settings),
            )
            self._sets[worker_set] = model
        self._sets.move_to_end(worker_set)
        return model

    def _worker_fit(self, worker_set: ObjectName, endpoint: str) -> ForgettingFit:
        key = (worker_set, endpoint)
        fit = self._workers.get(key)
        if fit is None:
            if len(self._workers) >= self._workers_max:
                self._workers.popitem(last=False)
            fit = self._workers[key] = self._new_fit()
        self._workers.move_to_end(key)
        return fit

    def _new_fit(self) -> ForgettingFit:
        settings = self._settings
        return ForgettingFit(
            settings.half_life_ns, settings.prior_samples, settings.outlier_spreads
        )
