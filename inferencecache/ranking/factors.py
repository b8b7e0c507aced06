"""The factors of a score, each a pure function of numbers.

Rules of this file: double precision throughout, nothing is rounded here, and no factor is ever NaN
or negative, whatever the replica reported.

Source: docs/adr/0005-ranking.md.
"""


def freshness(age_ns: int, ttl_ns: int) -> float:
    """Return how recent a report is, decaying linearly from 1 to 0.

    Positive for every age below the TTL, so "still fresh" and "freshness above 0" are the same.

    Args:
        age_ns: Time since the report, in nanoseconds; at or below 0 counts as just now.
        ttl_ns: Lifetime of a report, in nanoseconds, > 0.

    Returns:
        A ratio in [0, 1]: a 30-minute TTL gives 0.9666... after one minute, 0 after 30.

    Complexity: O(1).
    """
    if age_ns <= 0:
        return 1.0
    if age_ns >= ttl_ns:
        return 0.0
    return (ttl_ns - age_ns) / ttl_ns


def pressure_factor(pressure: float, weight: float) -> float:
    """Return the share of a score that a replica's load leaves over.

    Args:
        pressure: Load as reported, normally 0 to 1, not clamped; NaN counts as no load.
        weight: Share taken away at pressure 1, >= 0; 0 ignores pressure.

    Returns:
        A ratio in [0, 1].

    Complexity: O(1).
    """
    factor = 1.0 - weight * pressure
    if factor < 0.0:
        return 0.0
    return min(1.0, factor)


def slo_coefficient(ttft_ms: float, tight_ttft_ms: float, tight_bias: float) -> float:
    """Return how strongly a request favours fresh entries.

    Args:
        ttft_ms: The request's time-to-first-token target, in milliseconds; 0 means none.
        tight_ttft_ms: Targets below this are tight, in milliseconds, >= 0; 0 means never.
        tight_bias: Weight of freshness for tight requests, >= 0.

    Returns:
        *tight_bias* for a tight request, else 0.

    Complexity: O(1).
    """
    return tight_bias if 0 < ttft_ms < tight_ttft_ms else 0.0


def slo_bias(recency: float, coefficient: float) -> float:
    """Return the bonus of a recent report under a tight target.

    Args:
        recency: Freshness of the report, in [0, 1].
        coefficient: Result of :func:`slo_coefficient`, >= 0.

    Returns:
        A ratio in [1, 1 + coefficient].

    Complexity: O(1).
    """
    return 1.0 + recency * coefficient


def distinguishing_power(matching: int, total: int) -> float:
    """Return how much a match tells replicas apart: what all of them hold tells nothing.

    Args:
        matching: Replicas that match at least as deeply as this one; negative means unknown.
        total: Replicas that serve the scope.

    Returns:
        A ratio in [0, 1]: 1 of 3 gives 2/3, 3 of 3 gives 0; a lone replica always gives 1.

    Complexity: O(1).
    """
    if total <= 1 or matching < 0:
        return 1.0
    if matching >= total:
        return 0.0
    return 1.0 - matching / total
