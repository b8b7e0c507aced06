"""Request bodies from upload to release: what is kept, for how long, and who may have it."""

from inferencecache.picker.bodies.body import Body
from inferencecache.picker.bodies.ids import NewId
from inferencecache.picker.bodies.rope import Chunk, Rope, Span
from inferencecache.picker.bodies.state import BodyState
from inferencecache.picker.bodies.store import BodyStore

__all__ = ["Body", "BodyState", "BodyStore", "Chunk", "NewId", "Rope", "Span"]
