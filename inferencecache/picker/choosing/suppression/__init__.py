"""Leave destinations alone that fail, and try them again."""

from inferencecache.picker.choosing.suppression.standing import Failures, Standing, is_pickable
from inferencecache.picker.choosing.suppression.subject import (
    BACKEND_KINDS,
    FailureKind,
    Subject,
    place_of,
    subjects_of,
    whole_of,
)
from inferencecache.picker.choosing.suppression.table import Suppression, SuppressionObserver

__all__ = [
    "BACKEND_KINDS",
    "FailureKind",
    "Failures",
    "Standing",
    "Subject",
    "Suppression",
    "SuppressionObserver",
    "is_pickable",
    "place_of",
    "subjects_of",
    "whole_of",
]
