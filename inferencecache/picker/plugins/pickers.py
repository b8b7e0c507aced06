"""Pickers: best score, any, or any with odds by score."""

from collections.abc import Callable, Sequence
from math import inf, log
from operator import attrgetter
from typing import Annotated, Final

from msgspec import Meta

from inferencecache.picker.pipeline import Request, Scored
from inferencecache.picker.pipeline.parameters import PluginParameters
from inferencecache.picker.pipeline.registry import PluginServices, PluginType

Draw = Callable[[], float]


class PickerParameters(PluginParameters, frozen=True):
    """Parameters of all three.

    Attributes:
        max_num_of_endpoints: Read for the sake of configurations that give it; an answer names one
            endpoint, and keeps the others for the case that a PreRequest plugin fails.
    """

    max_num_of_endpoints: Annotated[int, Meta(ge=1)] = 1


_CHANCES: Final = 2
"""Places whose order matters: the choice, and who stands in for it."""


class MaxScorePicker:
    """Highest score first; of equal ones, any can come first.

    Args:
        draw: Returns a random number from 0 up to and without 1.
    """

    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def pick(self, _request: Request, scored: Sequence[Scored]) -> Sequence[Scored]:
        """Return *scored* by falling score."""
        order = sorted(scored, key=_score, reverse=True)
        for place in range(min(_CHANCES, len(order) - 1)):
            end = place + 1
            while end < len(order) and order[end].score == order[place].score:
                end += 1
            other = place + int(self._draw() * (end - place))
            order[place], order[other] = order[other], order[place]
        return order


class RandomPicker:
    """Any order is as likely as any other.

    Args:
        draw: Returns a random number from 0 up to and without 1.
    """

    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def pick(self, _request: Request, scored: Sequence[Scored]) -> Sequence[Scored]:
        """Return *scored* shuffled."""
        keyed = [(self._draw(), place) for place in range(len(scored))]
        return [scored[place] for _, place in sorted(keyed)]


class WeightedRandomPicker:
    """The odds of coming first are the scores; all of them 0 or less makes them equal.

    Args:
        draw: Returns a random number from 0 up to and without 1.

    Source: Efraimidis and Spirakis, Weighted random sampling with a reservoir, algorithm A-Res.
    """

    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def pick(self, _request: Request, scored: Sequence[Scored]) -> Sequence[Scored]:
        """Return *scored* by falling key, ``U ** (1 / score)``.

        Its logarithm is compared: the key itself is 0 for nearly all U where scores are small.
        """
        most = max((entry.score for entry in scored), default=0.0)
        keyed = [
            (self._key(_share(entry.score, most)), place) for place, entry in enumerate(scored)
        ]
        return [scored[place] for _, place in sorted(keyed)]

    def _key(self, share: float) -> tuple[bool, float]:
        """Return what sorts first where the key is high; who has no share comes behind all."""
        drawn = self._draw()
        late = -log(drawn) if drawn > 0 else inf
        return (True, late) if share <= 0 else (False, late / share)


def _share(score: float, most: float) -> float:
    """Return *score* as a share of the highest; all are alike where nobody has any."""
    return 1.0 if most <= 0 or score == most else score / most


_score: Final = attrgetter("score")


def _make(picker: Callable[[Draw], object]) -> Callable[[PickerParameters, PluginServices], object]:
    def make(_parameters: PickerParameters, services: PluginServices) -> object:
        return picker(services.draw)

    return make


MAX_SCORE_PICKER: Final = PluginType(
    name="max-score-picker", parameters=PickerParameters, make=_make(MaxScorePicker)
)
RANDOM_PICKER: Final = PluginType(
    name="random-picker", parameters=PickerParameters, make=_make(RandomPicker)
)
WEIGHTED_RANDOM_PICKER: Final = PluginType(
    name="weighted-random-picker", parameters=PickerParameters, make=_make(WeightedRandomPicker)
)
