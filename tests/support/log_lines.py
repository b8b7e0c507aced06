"""A log that remembers."""


class LogLines:
    """Keeps every line as event and fields."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict[str, object]]] = []

    def debug(self, event: str, **fields: object) -> None:
        """Keep a line."""
        self.lines.append(("debug", event, fields))

    def info(self, event: str, **fields: object) -> None:
        """Keep a line."""
        self.lines.append(("info", event, fields))

    def warning(self, event: str, **fields: object) -> None:
        """Keep a line."""
        self.lines.append(("warning", event, fields))

    def error(self, event: str, **fields: object) -> None:
        """Keep a line."""
        self.lines.append(("error", event, fields))

    def exception(self, event: str, **fields: object) -> None:
        """Keep a line."""
        self.lines.append(("exception", event, fields))

    def of(self, event: str) -> list[dict[str, object]]:
        """Return the fields of all lines of *event*."""
        return [fields for _, name, fields in self.lines if name == event]

    @property
    def text(self) -> str:
        """Everything, to look for what must not be in it."""
        return repr(self.lines)
