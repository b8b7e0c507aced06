"""From YAML bytes to plain values, document by document, with everything bounded.

Rules of this file
    1. Any bytes give documents or an :class:`UnreadableFileError`, nothing else.
    2. Nothing recurses: values are built from parser events with an explicit stack, so neither
       nesting nor aliases can exhaust the interpreter's.
    3. What a reader would have to guess at is a flaw of the document: a key given twice (the first
       value is kept for naming the object), a key that is no text, a merge key, a tag.

Theory of operation: libyaml turns bytes into events; a mapping or list on the stack collects what
follows until its end. An alias shares the value it stands for, and counts as all of its nodes and
levels, so that a file cannot stand for more than it may hold. Between two events the caller may do
something else: every so many events the generator yields None.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml
from yaml import events

from inferencecache.resources.flaw import Flaw, joined, shown
from inferencecache.resources.scalars import SPECIAL_STARTS, plain_value
from inferencecache.settings.resources import ResourceSettings

_SLICE_EVENTS: Final = 200
_FLAWS_MAX: Final = 20
_STR_TAG: Final = "tag:yaml.org,2002:str"
_SURPLUS: Final = "\udfff"
"""Key under which the value of a refused key is put aside; no YAML text holds half a pair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One YAML document.

    Attributes:
        number: Its place in the file, from 1.
        line: Where it starts, from 1.
        value: Dicts with text keys, lists, texts, numbers, booleans and None.
        flaws: What is wrong with it already, at most 20.
    """

    number: int
    line: int
    value: object
    flaws: tuple[Flaw, ...]


class UnreadableFileError(Exception):
    """A file is no YAML, or more than it may be.

    Attributes:
        flaw: What is wrong.
    """

    def __init__(self, value: str, allowed: str, line: int) -> None:
        super().__init__(value)
        self.flaw = Flaw(field="", value=value, allowed=allowed, line=line)


def parse_documents(content: bytes, settings: ResourceSettings) -> Iterator[Document | None]:
    """Yield the documents that are not empty, and None now and then as a pause.

    Args:
        content: The whole file.
        settings: Its limits.

    Raises:
        UnreadableFileError: From here on it cannot be read.
    """
    parser = yaml.CSafeLoader(content)
    try:
        is_empty = yield from _documents(parser, settings)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise UnreadableFileError(_reason(error), "YAML", mark.line + 1 if mark else 0) from error
    except (yaml.YAMLError, ValueError) as error:
        raise UnreadableFileError(_reason(error), "YAML", 0) from error
    finally:
        parser.dispose()
    if is_empty and b"#" not in content:  # a file that is being written, at a separator perhaps
        raise UnreadableFileError("an empty file", "at least one YAML document or comment", 1)


def _documents(
    parser: yaml.CSafeLoader, settings: ResourceSettings
) -> Generator[Document | None, None, bool]:
    """Yield the documents, and return whether there was none but empty ones."""
    builder = _Builder(settings)
    left = _SLICE_EVENTS
    is_empty = True
    get_event, takers = parser.get_event, _TAKERS
    while (event := get_event()) is not None:
        take = takers.get(type(event))
        if take is not None:
            take(builder, event)
        elif type(event) is events.DocumentEndEvent and builder.root is not None:
            is_empty = False
            yield builder.document()
        left -= 1
        if not left:
            left = _SLICE_EVENTS
            yield None
    return is_empty


def _reason(error: Exception) -> str:
    """Return what the parser had to say, in one line."""
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    return ascii(" ".join(str(problem).split())[:120])[1:-1]


class _Open:
    """A mapping or list whose end has not come yet.

    Attributes:
        members: What a mapping holds so far.
        elements: What a list holds so far, None for a mapping.
        key: The key whose value comes next, None between two members.
        height: Levels in it, itself included.
    """

    __slots__ = ("anchor", "elements", "height", "key", "members", "nodes_before")

    def __init__(
        self, elements: list[object] | None, anchor: str | None, nodes_before: int
    ) -> None:
        self.members: dict[str, object] = {}
        self.elements = elements
        self.anchor = anchor
        self.nodes_before = nodes_before
        self.height = 1
        self.key: str | None = None


class _Anchored:
    """What an alias stands for."""

    __slots__ = ("height", "nodes", "value")

    def __init__(self, value: object, nodes: int, height: int) -> None:
        self.value = value
        self.nodes = nodes
        self.height = height


class _Builder:
    """Builds the value of one document after the other.

    Attributes:
        root: The value of the document, once it is complete.
    """

    def __init__(self, settings: ResourceSettings) -> None:
        self._settings = settings
        self._nodes = 0
        self._number = 0
        self.root: object = None

    def document(self) -> Document:
        """Return the document that has just ended."""
        return Document(
            number=self._number, line=self._line, value=self.root, flaws=tuple(self._flaws)
        )

    def start(self, event: events.DocumentStartEvent) -> None:
        """Begin a document."""
        self.root = None
        self._number += 1
        self._line = _line(event)
        self._stack: list[_Open] = []
        self._top: _Open | None = None
        self._anchors: dict[str, _Anchored] = {}
        self._flaws: list[Flaw] = []

    def scalar(self, event: events.ScalarEvent) -> None:
        """Take a key or a value."""
        self._nodes += 1  # compared with the limit at the next mapping or list
        text: str = event.value
        value: object = text
        if event.implicit[0] and (not text or text[0] in SPECIAL_STARTS):
            value = plain_value(text)
        if event.tag is not None or event.anchor is not None:
            self._adorned(event, value)
        top = self._top
        if top is None:
            self.root = value
        elif top.elements is not None:
            top.elements.append(value)
        elif top.key is not None:
            top.members[top.key] = value
            top.key = None
        else:
            is_text = type(value) is str and (text != "<<" or not event.implicit[0])
            top.key = text
            if not is_text or text in top.members:
                self._refuse_key(event, top, is_text=is_text)

    def _adorned(self, event: events.ScalarEvent, value: object) -> None:
        """Take a scalar's anchor, and refuse its tag."""
        if event.tag not in {None, _STR_TAG}:
            self._flaw_here(event, shown(event.tag), "a value without a tag")
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(value, 1, 0)

    def _refuse_key(self, event: events.ScalarEvent, top: _Open, *, is_text: bool) -> None:
        """Have the value of a key that cannot count put aside."""
        allowed = "each key once" if is_text else "a text as key, quoted if it looks otherwise"
        self._flaw_here(event, shown(top.key), allowed)
        top.key = _SURPLUS

    def open_mapping(self, event: events.MappingStartEvent) -> None:
        """Begin a mapping."""
        self._open(event, None)

    def open_sequence(self, event: events.SequenceStartEvent) -> None:
        """Begin a list."""
        self._open(event, [])

    def _open(self, event: events.CollectionStartEvent, elements: list[object] | None) -> None:
        self._refuse_as_key(event)
        self._check_depth(1, event)
        if event.tag is not None:
            self._flaw_here(event, shown(event.tag), "a value without a tag")
        self._top = _Open(elements, event.anchor, self._nodes)
        self._stack.append(self._top)
        self._count(1, event)

    def close(self, _event: events.CollectionEndEvent) -> None:
        """End a mapping or list."""
        done = self._stack.pop()
        value: object = done.elements
        if done.elements is None:
            value = done.members
            done.members.pop(_SURPLUS, None)
        if done.anchor is not None:
            nodes = self._nodes - done.nodes_before
            self._anchors[done.anchor] = _Anchored(value, nodes, done.height)
        self._top = self._stack[-1] if self._stack else None
        self._put(value, done.height)

    def alias(self, event: events.AliasEvent) -> None:
        """Take what stands above."""
        self._refuse_as_key(event)
        anchored = self._anchors.get(event.anchor or "")
        if anchored is None:
            raise _unreadable(
                event, f"alias *{shown(event.anchor)[1:-1]}", "an alias of something above"
            )
        self._check_depth(anchored.height, event)
        self._count(anchored.nodes, event)
        self._put(anchored.value, anchored.height)

    def _put(self, value: object, height: int) -> None:
        """Add a complete value of so many levels to whatever is open."""
        top = self._top
        if top is None:
            self.root = value
            return
        if top.height <= height:
            top.height = height + 1
        if top.elements is not None:
            top.elements.append(value)
        else:
            top.members[top.key or ""] = value
            top.key = None

    def _count(self, nodes: int, event: events.Event) -> None:
        self._nodes += nodes
        if self._nodes > self._settings.nodes_max:
            raise _unreadable(
                event, "too many nodes", f"at most {self._settings.nodes_max} nodes in a file"
            )

    def _check_depth(self, levels: int, event: events.Event) -> None:
        if len(self._stack) + levels > self._settings.depth_max:
            raise _unreadable(
                event, "nested too deeply", f"at most {self._settings.depth_max} levels"
            )

    def _refuse_as_key(self, event: events.Event) -> None:
        top = self._top
        if top is not None and top.key is None and top.elements is None:
            raise _unreadable(event, "a key that is no text", "texts as keys")

    def _flaw_here(self, event: events.Event, value: str, allowed: str) -> None:
        """Record what is wrong at the place that is being read."""
        is_refused_already = any(opened.key == _SURPLUS for opened in self._stack[:-1])
        if is_refused_already or len(self._flaws) >= _FLAWS_MAX:
            return
        path = ""
        for opened in self._stack:
            if opened.elements is not None:
                path = joined(path, len(opened.elements))
            else:
                path = joined(path, opened.key or "")
        self._flaws.append(Flaw(field=path, value=value, allowed=allowed, line=_line(event)))


def _unreadable(event: events.Event, value: str, allowed: str) -> UnreadableFileError:
    return UnreadableFileError(value, allowed, _line(event))


def _line(event: events.Event) -> int:
    """Return the line, from 1, in which *event* starts."""
    mark = event.start_mark
    return mark.line + 1 if mark is not None else 0


_TAKERS: Final[dict[type[events.Event], Callable[[_Builder, Any], None]]] = {
    events.DocumentStartEvent: _Builder.start,
    events.ScalarEvent: _Builder.scalar,
    events.MappingStartEvent: _Builder.open_mapping,
    events.SequenceStartEvent: _Builder.open_sequence,
    events.MappingEndEvent: _Builder.close,
    events.SequenceEndEvent: _Builder.close,
    events.AliasEvent: _Builder.alias,
}
