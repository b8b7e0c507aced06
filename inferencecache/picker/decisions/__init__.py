"""Decisions from Pick to their end: what was reported, and what each destination has in flight."""

from inferencecache.picker.decisions.decision import Decision, DecisionFacts, Ending
from inferencecache.picker.decisions.following import DecisionFollower
from inferencecache.picker.decisions.in_flight import InFlight
from inferencecache.picker.decisions.records import DecisionRecord, DecisionRecords
from inferencecache.picker.decisions.reports import (
    AbortReport,
    FinalTokenReport,
    FirstTokenReport,
    ReportFlaw,
    usable,
)
from inferencecache.picker.decisions.table import DecisionTable

__all__ = [
    "AbortReport",
    "Decision",
    "DecisionFacts",
    "DecisionFollower",
    "DecisionRecord",
    "DecisionRecords",
    "DecisionTable",
    "Ending",
    "FinalTokenReport",
    "FirstTokenReport",
    "InFlight",
    "ReportFlaw",
    "usable",
]
