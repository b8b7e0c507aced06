"""Choose a destination for a request out of a fleet."""

from inferencecache.picker.choosing.chooser import FleetChooser, InForce
from inferencecache.picker.choosing.exploration import Exploration
from inferencecache.picker.choosing.failed_places import FailedPlaces, RequestName
from inferencecache.picker.choosing.fleet_index import FleetIndex, fleet_index, fleet_index_slices
from inferencecache.picker.choosing.fleet_pick import ChooserParts
from inferencecache.picker.choosing.learning import LearningObserver, LearnsNothing
from inferencecache.picker.choosing.limits import Limits
from inferencecache.picker.choosing.outlook import Knowledge
from inferencecache.picker.choosing.policy_gate import PolicyGate
from inferencecache.picker.choosing.ranking import TtftRanker
from inferencecache.picker.choosing.rewriting import Rewriting
from inferencecache.picker.choosing.suppression import (
    FailureKind,
    Subject,
    Suppression,
    SuppressionObserver,
)
from inferencecache.picker.choosing.waiting_room import Deferred, FairQueue, WaitingRoom

__all__ = [
    "ChooserParts",
    "Deferred",
    "Exploration",
    "FailedPlaces",
    "FailureKind",
    "FairQueue",
    "FleetChooser",
    "FleetIndex",
    "InForce",
    "Knowledge",
    "LearningObserver",
    "LearnsNothing",
    "Limits",
    "PolicyGate",
    "RequestName",
    "Rewriting",
    "Subject",
    "Suppression",
    "SuppressionObserver",
    "TtftRanker",
    "WaitingRoom",
    "fleet_index",
    "fleet_index_slices",
]
