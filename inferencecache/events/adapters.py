"""From an engine's adapter number to a name that means the same on every replica."""

from collections.abc import Mapping

from inferencecache.errors import ConfigError

BASE_ADAPTER_ID = ""


def parse_adapter_names(text: str) -> dict[int, str]:
    """Return the adapter map written as ``1=sql-lora,2=chat-lora``.

    Blank items are skipped and blanks around parts do not count. Only the first ``=`` separates,
    so names may contain more.

    Raises:
        ConfigError: An item without ``=``, without a number or a name, or a number given twice.
    """
    names: dict[int, str] = {}
    for item in filter(None, map(str.strip, text.split(","))):
        number, separator, name = (part.strip() for part in item.partition("="))
        if not separator or not name or not _is_integer(number) or int(number) in names:
            raise ConfigError(
                field="lora-adapter-names", value=item, allowed="id=name, each id once"
            )
        names[int(number)] = name
    return names


def _is_integer(text: str) -> bool:
    digits = text[1:] if text[:1] in {"-", "+"} else text
    return digits.isascii() and digits.isdigit()


class AdapterNames:
    """Decides the partition of a store.

    An engine numbers its adapters in load order, so the same number may mean different adapters on
    two replicas. A number without a name is therefore refused rather than indexed under itself.

    Args:
        names: Configured names by number; they win over what an event says.
        use_event_name: Whether a name carried by the event serves when the map has none.
    """

    def __init__(self, names: Mapping[int, str], *, use_event_name: bool) -> None:
        self._names = dict(names)
        self._use_event_name = use_event_name

    def resolve(self, lora_id: int | None, lora_name: str) -> str | None:
        """Return the partition, empty for the base model; None if the adapter has no known name.

        An event may name an adapter without numbering it; it is not the base model's either.
        """
        if lora_id is None and not lora_name:
            return BASE_ADAPTER_ID
        if lora_id is not None and lora_id in self._names:
            return self._names[lora_id]
        return (lora_name or None) if self._use_event_name else None
