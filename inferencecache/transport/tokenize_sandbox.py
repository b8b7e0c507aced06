"""What a chat template may do: nothing but write, in so many steps, and no text above a length.

Templates come with models, from anybody, and some prompts are written on the event loop. So what a
template repeats is counted: each turn of a loop and each call is a step. Texts, lists and numbers
are looked at where they grow on their own: where they are multiplied, added or joined.
"""

from collections.abc import Iterable, Iterator
from threading import local
from typing import Any, Final, TypeVar

from jinja2 import nodes
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

ValueT = TypeVar("ValueT")

_COUNTED: Final = "_counted"
_MEASURED: Final = "_measured"
_TIMES: Final = "*"
_POWER: Final = "**"
_PLUS: Final = "+"


class TooMuchTextError(Exception):
    """A template wrote more than it may, or made something larger."""


class TooManyStepsError(Exception):
    """A template did more than it may."""


class TemplateSandbox(ImmutableSandboxedEnvironment):
    """Where templates run; from any thread.

    Args:
        steps_max: Most turns of loops and calls while one prompt is written.
        size_max: Longest text or list that may be made, and the most bits of a number.
        options: As for any environment.
    """

    intercepted_binops = frozenset({_TIMES, _POWER, _PLUS})

    def __init__(self, steps_max: int, size_max: int, **options: Any) -> None:  # noqa: ANN401 - theirs
        super().__init__(**options)
        self._steps_max = steps_max
        self._size_max = size_max
        self._run = local()
        self.filters[_COUNTED] = self._counted
        self.filters[_MEASURED] = self._measured

    def limited(self, source: str) -> nodes.Template:
        """Return *source* as what :meth:`from_string` takes, with all that repeats counted.

        Raises:
            TemplateSyntaxError: It is no template.
        """
        limited: nodes.Template = _Limiting().visit(self.parse(source))
        return limited

    def begin(self, steps_max: int | None = None) -> None:
        """Give the thread its steps, all or fewer, for a prompt that it is about to write."""
        self._run.left = self._steps_max if steps_max is None else min(steps_max, self._steps_max)

    def call(self, context: Context, called: Any, /, *args: Any, **named: Any) -> Any:  # noqa: ANN401 - whatever a template calls
        """Call what a template calls, as one step."""
        self._step()
        if isinstance(called, LoopContext):
            args = (self._counted(args[0]), *args[1:])
        return super().call(context, called, *args, **named)

    def getattr(self, value: Any, attribute: str) -> Any:  # noqa: ANN401 - the same
        """Return what a template asks for by a dot; where it can only be an item, without more."""
        if type(value) is dict and attribute in value and not hasattr(dict, attribute):
            return value[attribute]
        return super().getattr(value, attribute)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:  # noqa: ANN401 - the same
        """Compute what a template computes, unless that is too large."""
        if operator == _PLUS:
            made = left + right
            if type(made) is str and len(made) <= self._size_max:  # nearly always: joins of texts
                return made
            return self._measured(made)
        if _size_of_product(operator, left, right) > self._size_max:
            raise TooMuchTextError
        return super().call_binop(context, operator, left, right)

    def _counted(self, items: Iterable[object]) -> Iterator[object]:
        for item in items:
            self._step()
            yield item

    def _measured(self, made: ValueT) -> ValueT:
        if isinstance(made, (str, list, tuple)) and len(made) > self._size_max:
            raise TooMuchTextError
        return made

    def _step(self) -> None:
        self._run.left -= 1
        if self._run.left < 0:
            raise TooManyStepsError


class _Limiting(NodeTransformer):
    """Puts what counts into a template."""

    def visit_For(self, node: nodes.For) -> nodes.For:  # noqa: N802 - named by the library
        """Count the turns of a loop."""
        self.generic_visit(node)
        node.iter = _filtered(node.iter, _COUNTED)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:  # noqa: N802 - the same
        """Look at what is joined."""
        self.generic_visit(node)
        return _filtered(node, _MEASURED)


def _filtered(node: nodes.Node, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


def _size_of_product(operator: str, left: object, right: object) -> int:
    """Return how large a product or power is: characters, items or bits; 0 if that is unknown."""
    if isinstance(left, int) and isinstance(right, int):
        bits = left.bit_length()
        return bits * max(right, 0) if operator == _POWER else bits + right.bit_length()
    times = left if isinstance(left, int) else right
    repeated = right if isinstance(left, int) else left
    if isinstance(times, int) and isinstance(repeated, (str, list, tuple)):
        return len(repeated) * times
    return 0
