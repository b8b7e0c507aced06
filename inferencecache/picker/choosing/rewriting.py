"""Draw the model that stands in for the one that a client asked for."""

from collections.abc import Callable, Iterable

from inferencecache.picker.fleet import ModelRewrite, ObjectName, RewriteRule

Draw = Callable[[], float]
"""Draws a number from 0 up to, but not including, 1."""


class Rewriting:
    """The rules of one fleet, found at once.

    A rule that names the model comes before those for every model, one for the pool before one for
    all pools; of several the first counts.

    Args:
        rewrites: In the order in which they count.
        draw: Chooses between the targets of a rule.
    """

    def __init__(self, rewrites: Iterable[ModelRewrite], draw: Draw) -> None:
        self._draw = draw
        self._rules: dict[tuple[ObjectName | None, str | None], RewriteRule] = {}
        for rewrite in rewrites:
            for rule in rewrite.rules:
                for model in (None,) if rule.models is None else sorted(rule.models):
                    self._rules.setdefault((rewrite.pool, model), rule)

    def target(self, model: str, pool: ObjectName | None) -> str:
        """Return the model that *model*, which may be empty, is to be looked for as."""
        if not self._rules:
            return model
        for key in ((pool, model), (None, model), (pool, None), (None, None)):
            rule = self._rules.get(key)
            if rule is not None:
                return self._drawn(rule)
        return model

    def _drawn(self, rule: RewriteRule) -> str:
        left = self._draw() * sum(target.weight for target in rule.targets)
        for target in rule.targets:
            left -= target.weight
            if left < 0:
                return target.model
        return rule.targets[-1].model
