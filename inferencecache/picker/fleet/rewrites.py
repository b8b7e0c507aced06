"""Which model stands in for the one that a client asked for: the rules of ModelRewrite objects.

Rules of this file
    1. A request is rewritten once, by one rule, before its model is looked for anywhere.
    2. A rule that names the model comes before those that match every model; then an object for
       the request's pool before one for all pools; then the order of objects and rules.
    3. Of a rule's targets one is drawn, each as often as its weight says.
"""

from dataclasses import dataclass

from inferencecache.picker.fleet.member import ObjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteTarget:
    """A model that may stand in.

    Attributes:
        model: Its name, as a client would ask for it.
        weight: Its share beside the other targets, above 0.
    """

    model: str
    weight: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteRule:
    """One rule.

    Attributes:
        models: The names that it matches, as clients send them; None matches every request, also
            one whose body names no model.
        targets: One or more, each model once.
    """

    models: frozenset[str] | None
    targets: tuple[RewriteTarget, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRewrite:
    """The rules of one object.

    Attributes:
        key: Its namespace and name.
        pool: For whose requests it counts; None for those of every pool and of none.
        rules: In the order in which they are tried.
        generation: Changes when the object does.
    """

    key: ObjectName
    pool: ObjectName | None
    rules: tuple[RewriteRule, ...]
    generation: str = ""
