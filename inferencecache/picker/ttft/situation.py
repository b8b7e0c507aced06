"""What a time to the first token depends on."""

from typing import Final, NamedTuple

TOKENS_PER_UNIT: Final = 1_000.0
"""Tokens are weighed by the thousand, so that all numbers of a fit are of one size."""

FEATURE_COUNT: Final = 4

Features = tuple[float, float, float, float]
"""1, thousands of own tokens, thousands of tokens ahead, requests ahead."""


class Situation(NamedTuple):
    """A request as an endpoint would meet it.

    Nothing of it is negative. What is ahead may be a fraction: it counts by the endpoint's weight.

    Attributes:
        uncached_tokens: Tokens of its prompt that the endpoint must compute.
        uncached_tokens_ahead: The same of all requests before it whose first token is to come.
        requests_ahead: Requests that the endpoint has to do.
        waiting_ahead: Those of them that it has not begun with.
    """

    uncached_tokens: int
    uncached_tokens_ahead: float
    requests_ahead: float
    waiting_ahead: float = 0.0

    def features(self) -> Features:
        """Return it as a row of a fit."""
        return (
            1.0,
            self.uncached_tokens / TOKENS_PER_UNIT,
            self.uncached_tokens_ahead / TOKENS_PER_UNIT,
            float(self.requests_ahead),
        )
