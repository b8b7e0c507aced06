"""Which chat templates write a longer conversation by going on from a shorter one.

Such a template goes through the turns once, writes each without a look at any other, and keeps
nothing from one to the next. Then what it writes for a conversation is what stands before the first
turn, the turns, and what stands behind the last: what turns are written as never changes again, and
further turns can be written without those before them, as long as the first one is given.

Rules of this file: whatever is not known to be harmless is not; a template that is refused here is
given whole conversations, which takes longer and is never wrong.
"""

from collections.abc import Iterator
from typing import Any, Final

from jinja2 import nodes

_TURNS: Final = "messages"
_LOOP: Final = "loop"
_FIRST: Final = "first"
_NUMBER: Final = "index0"

_HARMLESS: Final = (
    nodes.Template,
    nodes.Output,
    nodes.TemplateData,
    nodes.Literal,
    nodes.Pair,
    nodes.Keyword,
    nodes.Name,
    nodes.Getattr,
    nodes.Getitem,
    nodes.Slice,
    nodes.If,
    nodes.CondExpr,
    nodes.Assign,
    nodes.For,
    nodes.Filter,
    nodes.Test,
    nodes.Call,
    nodes.BinExpr,
    nodes.UnaryExpr,
    nodes.Compare,
    nodes.Operand,
    nodes.Concat,
)
"""Kinds of which each writes, or is worth, the same for the same values."""

_STATEFUL: Final = frozenset(
    {"namespace", "cycler", "joiner", "lipsum", "strftime_now", "self", "caller", "context"}
)
_RANDOM: Final = "random"
_CALLED: Final = frozenset({"raise_exception", "range"})
_USED_UP: Final = frozenset(
    {
        "batch",
        "items",
        "map",
        "reject",
        "rejectattr",
        "reverse",
        "select",
        "selectattr",
        "slice",
        "unique",
    }
)
"""What these give can be gone through once: the turn that does leaves nothing to the next."""

_APPLYING: Final = "map"
"""This gives whatever the filter gives that it is told to apply."""

_USING_UP: Final = frozenset({"first", "join", "last", "list", "max", "min", "sort", "sum"})
"""These go through what they are given at once."""


class TurnsInText(list[Any]):
    """Turns that are being written, and where in the text each of them begins.

    Attributes:
        written: Characters so far; told by whoever puts the text together.
        starts: Where turns begin, and where the last one ends.
    """

    def __init__(self, turns: list[Any]) -> None:
        super().__init__(turns)
        self.written = 0
        self.starts: list[int] = []

    def __iter__(self) -> Iterator[Any]:
        """Yield the turns; whoever asks for one has written those before it."""
        for turn in super().__iter__():
            self.starts.append(self.written)
            yield turn
        self.starts.append(self.written)


def goes_turn_by_turn(template: nodes.Template) -> bool:
    """Return whether *template* writes a longer conversation by going on from a shorter one.

    Complexity: O(n) in the template; once for each.
    """
    names = {_TURNS, *_other_names(template)}
    loops = [node for node in template.body if isinstance(node, nodes.For) and _over(node, names)]
    if len(loops) != 1 or not _is_plain(loops[0]):
        return False
    turns = loops[0].iter
    outside = [node for node in template.body if node is not loops[0]]
    return all(
        _is_harmless(node, parent, names) or node is turns or _names_turns_anew(parent, names)
        for parent, node in _nodes(template)
    ) and not (_knows_its_place(loops[0].body) or any(map(_keeps_what_is_used_up, outside)))


def _other_names(template: nodes.Template) -> set[str]:
    """Return what else a template calls the turns, where it says so before all else."""
    named = [node for node in template.body if isinstance(node, nodes.Assign)]
    return {
        node.target.name
        for node in named
        if isinstance(node.target, nodes.Name)
        and isinstance(node.node, nodes.Name)
        and node.node.name == _TURNS
    }


def _over(loop: nodes.For, names: set[str]) -> bool:
    return isinstance(loop.iter, nodes.Name) and loop.iter.name in names


def _is_plain(loop: nodes.For) -> bool:
    """Return whether a loop writes all turns the same way."""
    return (
        isinstance(loop.target, nodes.Name)
        and not loop.recursive
        and loop.test is None
        and not loop.else_
    )


def _nodes(parent: nodes.Node) -> Iterator[tuple[nodes.Node, nodes.Node]]:
    for node in parent.iter_child_nodes():
        yield parent, node
        yield from _nodes(node)


def _is_harmless(node: nodes.Node, parent: nodes.Node, names: set[str]) -> bool:
    """Return whether *node* keeps nothing, and looks at no turn but the first."""
    if isinstance(node, nodes.Name):
        if node.name in names:
            return _is_first_of(parent, node)
        return node.name not in _STATEFUL
    if isinstance(node, nodes.Call):
        called = node.node
        return isinstance(called, nodes.Getattr) or (
            isinstance(called, nodes.Name) and called.name in _CALLED
        )
    if isinstance(node, nodes.Filter) and node.name == _RANDOM:
        return False
    return isinstance(node, _HARMLESS) and not (isinstance(node, nodes.For) and node.recursive)


def _is_first_of(parent: nodes.Node, node: nodes.Name) -> bool:
    return (
        isinstance(parent, nodes.Getitem)
        and parent.node is node
        and isinstance(parent.arg, nodes.Const)
        and type(parent.arg.value) is int
        and parent.arg.value == 0
    )


def _names_turns_anew(parent: nodes.Node, names: set[str]) -> bool:
    """Return whether *parent* only gives the turns another name."""
    return (
        isinstance(parent, nodes.Assign)
        and isinstance(parent.node, nodes.Name)
        and parent.node.name == _TURNS
        and isinstance(parent.target, nodes.Name)
        and parent.target.name in names
    )


def _keeps_what_is_used_up(node: nodes.Node) -> bool:
    """Return whether *node* has a value that turns can only go through once between them."""
    return any(
        isinstance(inner, nodes.Filter)
        and inner.name in _USED_UP
        and not (_uses_up(parent, inner) and _gives_whole_values(inner))
        for parent, inner in _nodes(node)
    )


def _gives_whole_values(node: nodes.Filter) -> bool:
    """Return whether each of the values that *node* gives can be gone through again and again."""
    if node.name != _APPLYING:
        return True
    applied = node.args[:1]  # none where it takes an attribute of each
    return node.dyn_args is None and all(
        isinstance(name, nodes.Const) and name.value not in _USED_UP for name in applied
    )


def _uses_up(parent: nodes.Node, node: nodes.Node) -> bool:
    if isinstance(parent, nodes.Filter):
        return parent.node is node and parent.name in _USED_UP | _USING_UP
    return isinstance(parent, nodes.For) and parent.iter is node


def _knows_its_place(body: list[nodes.Node]) -> bool:
    """Return whether a turn's text depends on its place, beside whether that is the first."""
    return any(map(_asks_for_place, body))


def _asks_for_place(node: nodes.Node) -> bool:
    if isinstance(node, nodes.Name):
        return node.name == _LOOP
    if isinstance(node, nodes.For):  # what stands in it has a loop of its own, but not its test
        of_turns = [node.iter, *([] if node.test is None else [node.test]), *node.else_]
        return any(map(_asks_for_place, of_turns))
    if _asks_for_the_first(node):
        return False
    return any(map(_asks_for_place, node.iter_child_nodes()))


def _asks_for_the_first(node: nodes.Node) -> bool:
    if isinstance(node, nodes.Compare):  # index0 == 0
        asked = node.expr
        compared = [operand.expr for operand in node.ops]
        is_zero = len(compared) == 1 and compared[0] == nodes.Const(0)
        return is_zero and _is_of_loop(asked, _NUMBER)
    return _is_of_loop(node, _FIRST)


def _is_of_loop(node: nodes.Node, attribute: str) -> bool:
    return (
        isinstance(node, nodes.Getattr)
        and node.attr == attribute
        and isinstance(node.node, nodes.Name)
        and node.node.name == _LOOP
    )
