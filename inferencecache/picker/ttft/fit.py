"""A straight-line fit that forgets, distrusts outliers, and never learns that more work is faster.

Worked example. Reports of one endpoint say: 1,000 tokens took 150 ms, 2,000 took 250 ms. The fit
keeps no report, only their sums: how often each pair of features met (``gram``) and how they met
the times (``moment``). Its weights are those that explain the sums best: 50 ms and 100 ms per
thousand tokens. Without reports they are the weights it was given to start with; how many reports
it takes to leave those behind is a setting. A feature that would get a negative weight is left out.

Sums fade with time, so that an hour-old report weighs nothing, and a report far off what the fit
expected is weighed down to the pull of one at a bearable distance.
"""

from inferencecache.picker.ttft.linear import solved
from inferencecache.picker.ttft.situation import FEATURE_COUNT, Features

_FIRST_SPREAD = 1.0
_SPREAD_LEARNING = 0.1
_START_MOVED = 0.01
"""A start that moved by less than this share is not worth a new solution."""


def weighed(weights: Features, features: Features) -> float:
    """Return the sum of *features* by their *weights*."""
    w0, w1, w2, w3 = weights
    f0, f1, f2, f3 = features
    return w0 * f0 + w1 * f1 + w2 * f2 + w3 * f3


class ForgettingFit:
    """Weights for :class:`Situation` features, learnt from observed milliseconds.

    Args:
        half_life_ns: In which time a report loses half of its weight.
        prior_samples: How many reports the starting weights are worth.
        outlier_spreads: From how many typical errors on a report pulls no harder.
    """

    __slots__ = (
        "_gram",
        "_half_life_ns",
        "_is_solved",
        "_moment",
        "_outlier_spreads",
        "_prior_samples",
        "_seen_ns",
        "_spread",
        "_start",
        "_weights",
    )

    def __init__(self, half_life_ns: int, prior_samples: float, outlier_spreads: float) -> None:
        self._half_life_ns = half_life_ns
        self._prior_samples = prior_samples
        self._outlier_spreads = outlier_spreads
        self._gram = [[0.0] * FEATURE_COUNT for _ in range(FEATURE_COUNT)]
        self._moment = [0.0] * FEATURE_COUNT
        self._weights: Features = (0.0, 0.0, 0.0, 0.0)
        self._start: Features | None = None
        self._is_solved = False
        self._spread: float | None = None
        self._seen_ns = 0

    def observe(self, features: Features, observed_ms: float, start: Features, now_ns: int) -> None:
        """Learn from one report.

        Args:
            features: What was met.
            observed_ms: How long it took.
            start: The weights to hold on to while there is little evidence.
            now_ns: Monotonic time; never goes back.

        Complexity: O(1).
        """
        error_ms = abs(observed_ms - self.value(features, start))
        trust = self._trust(error_ms)
        self._fade(now_ns)
        for row, left in enumerate(features):
            self._moment[row] += trust * left * observed_ms
            sums = self._gram[row]
            for column, right in enumerate(features):
                sums[column] += trust * left * right
        self._is_solved = False

    def value(self, features: Features, start: Features) -> float:
        """Return the expected milliseconds, never negative.

        Complexity: O(1); a new solution after each report.
        """
        return weighed(self.weights(start), features)

    def weights(self, start: Features) -> Features:
        """Return the weights; none is negative.

        Complexity: O(1); a new solution after each report.
        """
        if not self._is_solved or self._has_moved(start):
            self._solve(start)
        return self._weights

    def _has_moved(self, start: Features) -> bool:
        before = self._start
        return before is not start and (
            before is None
            or any(
                abs(new - old) > _START_MOVED * (1.0 + old)
                for new, old in zip(start, before, strict=True)
            )
        )

    def _trust(self, error_ms: float) -> float:
        """Return the weight of a report that is *error_ms* off, and learn what is usual."""
        if self._spread is None:
            self._spread = max(_FIRST_SPREAD, error_ms)
            return 1.0
        bearable = self._outlier_spreads * self._spread
        pull = min(error_ms, bearable)
        self._spread = max(_FIRST_SPREAD, self._spread + _SPREAD_LEARNING * (pull - self._spread))
        return 1.0 if error_ms <= bearable else bearable / error_ms

    def _fade(self, now_ns: int) -> None:
        elapsed_ns = max(0, now_ns - self._seen_ns)
        self._seen_ns = max(now_ns, self._seen_ns)
        kept = 0.5 ** (elapsed_ns / self._half_life_ns)
        self._moment = [kept * value for value in self._moment]
        self._gram = [[kept * value for value in row] for row in self._gram]

    def _solve(self, start: Features) -> None:
        """Find the weights: those of a plain fit, without the features that it would reward."""
        prior = self._prior_samples
        wanted = [moment + prior * first for moment, first in zip(self._moment, start, strict=True)]
        kept = list(range(FEATURE_COUNT))
        weights = [0.0] * FEATURE_COUNT
        while kept:
            rows = [
                [self._gram[row][column] + (prior if row == column else 0.0) for column in kept]
                for row in kept
            ]
            found = solved(rows, [wanted[row] for row in kept])
            if min(found) >= 0.0:
                for column, weight in zip(kept, found, strict=True):
                    weights[column] = weight
                break
            kept = [column for column, weight in zip(kept, found, strict=True) if weight > 0.0]
        first, second, third, fourth = weights
        self._weights = (first, second, third, fourth)
        self._start = start
        self._is_solved = True
