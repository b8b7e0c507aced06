"""Chat templates: small programs that come with a model and write its prompts.

They run in a sandbox that lets them change nothing of what they are given, with the functions that
such templates expect, and may do and write only so much.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Macro

from inferencecache.transport.tokenize_files import LoadLimits
from inferencecache.transport.tokenize_sandbox import TemplateSandbox, TooMuchTextError
from inferencecache.transport.tokenize_turns import TurnsInText, goes_turn_by_turn

_DATE: Final = "strftime_now"


class ChatTemplate:
    """A template, ready to be used from any thread.

    Args:
        source: Its text.
        limits: What it may do, and the date.

    Raises:
        TemplateSyntaxError: It is none.

    Attributes:
        characters_max: How much it may write.
        knows_parts: Whether it goes through the parts of a turn itself.
        tells_date: Whether what it writes depends on the date.
        goes_turn_by_turn: Whether it writes a longer conversation by going on from a shorter one.
    """

    def __init__(self, source: str, limits: LoadLimits) -> None:
        self._sandbox = environment = _environment(limits)
        self._template = environment.from_string(environment.limited(source))
        self.characters_max = limits.characters_max
        parsed = environment.parse(source)
        self.knows_parts = any(map(_goes_through_parts, parsed.find_all(nodes.For)))
        self.goes_turn_by_turn = goes_turn_by_turn(parsed)
        self.tells_date = _DATE in source

    def render(
        self,
        variables: Mapping[str, Any],
        steps_max: int | None = None,
        turns: TurnsInText | None = None,
    ) -> str:
        """Return what it writes.

        Args:
            variables: What it is given.
            steps_max: Most turns of loops and calls, if fewer than it may take at all.
            turns: Told how much is written, if it goes turn by turn and these are its turns.

        Raises:
            TooMuchTextError: That is too much.
            TooManyStepsError: That takes too many steps.
            Exception: Whatever the template raises.
        """
        turns = TurnsInText([]) if turns is None else turns
        pieces: list[str] = []
        self._sandbox.begin(steps_max)
        for piece in self._template.generate(variables):
            pieces.append(piece)
            turns.written += len(piece)
            if turns.written > self.characters_max:
                raise TooMuchTextError
        return "".join(pieces)


class _Generation(Extension):
    """Marks answers, for training; writes what stands in it."""

    tags = {"generation"}  # noqa: RUF012 - declared so by its base class

    def parse(self, parser: Parser) -> nodes.Node:
        """Return the block."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_written"), [], [], body).set_lineno(line)

    def _written(self, caller: Macro) -> str:
        return caller()


def _environment(limits: LoadLimits) -> TemplateSandbox:
    environment = TemplateSandbox(
        limits.steps_max,
        limits.characters_max,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[_Generation, "jinja2.ext.loopcontrols"],
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _refuse
    environment.globals[_DATE] = lambda form: limits.now().strftime(form)
    return environment


def _to_json(
    value: object,
    ensure_ascii: bool = False,  # noqa: FBT001, FBT002 - the same
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,  # noqa: FBT001, FBT002 - the same
) -> str:
    """Return *value* as JSON, not escaped for HTML as the library's own filter does."""
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def _refuse(message: str) -> None:
    raise TemplateError(message)


def _goes_through_parts(loop: nodes.For) -> bool:
    over: nodes.Node = loop.iter
    while isinstance(over, (nodes.Filter, nodes.Test)) or (
        isinstance(over, nodes.Getitem) and isinstance(over.arg, nodes.Slice)
    ):
        if over.node is None:
            return False
        over = over.node
    if isinstance(over, nodes.Getattr):
        return over.attr == "content"
    return (
        isinstance(over, nodes.Getitem)
        and isinstance(over.arg, nodes.Const)
        and over.arg.value == "content"
    )
