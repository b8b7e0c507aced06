"""Choose among endpoints that were written down: the one with the fewest requests in flight."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from inferencecache.errors import ConfigError
from inferencecache.picker.choice import Choice, LocalDestination, Outcome, Question, Refusal
from inferencecache.picker.decisions import InFlight
from inferencecache.picker.request import Api
from inferencecache.settings.address import BindAddress

ENDPOINTS_FORM = "MODEL=HOST:PORT or MODEL=HOST:PORT/TARGET-MODEL, separated by commas"


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedEndpoint:
    """One endpoint of one model.

    Attributes:
        model: The name that clients use.
        endpoint: ``host:port``.
        target_model: The name that the engine uses.
    """

    model: str
    endpoint: str
    target_model: str


def read_endpoints(text: str) -> list[FixedEndpoint]:
    """Read the setting that lists endpoints.

    >>> read_endpoints("gpt=10.0.0.1:8000/llama")[0].target_model
    'llama'

    Raises:
        ConfigError: It has another form.
    """
    return [_read_endpoint(item) for item in text.split(",") if item.strip()]


def _read_endpoint(item: str) -> FixedEndpoint:
    model, _, rest = item.strip().partition("=")
    endpoint, slash, target_model = rest.partition("/")
    try:
        address = BindAddress.parse(endpoint)
    except ValueError:
        raise _form_error(item) from None
    if not model or not address.host or not address.port or (slash and not target_model):
        raise _form_error(item)
    return FixedEndpoint(model=model, endpoint=endpoint, target_model=target_model or model)


def _form_error(item: str) -> ConfigError:
    return ConfigError(field="picker-endpoints", value=item, allowed=ENDPOINTS_FORM)


class FixedEndpoints:
    """A chooser that knows its endpoints from the start; all of them count as ready.

    Of those with equally few requests in flight it takes the one that was chosen longest ago.

    Args:
        endpoints: All there are.
        in_flight: What each of them has to do.
    """

    def __init__(self, endpoints: Iterable[FixedEndpoint], in_flight: InFlight) -> None:
        self._by_model = _by_model(endpoints)
        self._in_flight = in_flight
        self._last_choice: dict[str, int] = {}
        self._choices = 0

    async def choose(self, question: Question) -> Choice | Refusal:
        """Return the least busy endpoint of the model that *question* asks for."""
        if question.pool is not None:
            return Refusal(outcome=Outcome.NO_WORKERS, reason="pool=unknown")
        eligible = self._by_model.get(question.request.model)
        if not eligible:
            return Refusal(outcome=Outcome.NO_WORKERS, reason="model=unknown")
        chosen = min(eligible, key=self._load)
        self._choices += 1
        self._last_choice[chosen.endpoint] = self._choices
        is_unknown = question.request.api is Api.UNKNOWN
        return Choice(
            destination=LocalDestination(endpoint=chosen.endpoint),
            target_model=chosen.target_model,
            reason="rank=in_flight;prefix=none" + (";degraded=shape" if is_unknown else ""),
            is_degraded=is_unknown,
        )

    def _load(self, endpoint: FixedEndpoint) -> tuple[int, int, str]:
        name = endpoint.endpoint
        return self._in_flight.of(name), self._last_choice.get(name, 0), name


def _by_model(endpoints: Iterable[FixedEndpoint]) -> Mapping[str, list[FixedEndpoint]]:
    by_model: dict[str, list[FixedEndpoint]] = {}
    for endpoint in endpoints:
        by_model.setdefault(endpoint.model, []).append(endpoint)
    return by_model
