"""What each candidate has to do: as this picker knows, and as its engine says."""

from inferencecache.picker.load.candidate_load import IDLE, CandidateLoad
from inferencecache.picker.load.engine_signals import EngineSignal, EngineSignals
from inferencecache.picker.load.load_table import LoadShare, LoadTable
from inferencecache.picker.load.queue import Queue, queue_of

__all__ = [
    "IDLE",
    "CandidateLoad",
    "EngineSignal",
    "EngineSignals",
    "LoadShare",
    "LoadTable",
    "Queue",
    "queue_of",
]
