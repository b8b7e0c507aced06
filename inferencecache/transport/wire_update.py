"""CacheStateUpdate as a message whose entries stay bytes.

On the wire a nested message and a bytes field are the same: a tag, a length, content. Declared as
bytes, the entries of an update are split from each other by the library and not looked into, which
takes a third of the time and makes no object per entry. Everything else of the message is declared
as in the contract, whose own descriptor this one is a copy of.
"""

from collections.abc import Sequence
from typing import Final, Protocol, cast

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from inferencecache.v1alpha1 import inferencecache_pb2 as pb


class WireUpdate(Protocol):
    """A CacheStateUpdate; *prefixes* holds each entry as a serialised PrefixEntry."""

    replica_id: str
    model_id: str
    tenant_id: str
    hash_scheme: str
    timestamp_us: int
    prefixes: Sequence[bytes]
    stats: pb.ReplicaStats
    adapter_id: str

    def ClearField(self, field_name: str) -> None:  # noqa: N802 - the library's name
        """Make a field empty."""
        ...

    def MergeFromString(self, serialized: bytes) -> int:  # noqa: N802 - the library's name
        """Add what *serialized* says to what is there."""
        ...

    def HasField(self, field_name: str) -> bool:  # noqa: N802 - the library's name
        """Tell whether a field of a message type is present."""
        ...


class _WireUpdateClass(Protocol):
    DESCRIPTOR: Descriptor

    def __call__(self) -> WireUpdate:
        """Return an empty update."""
        ...

    def FromString(self, data: bytes) -> WireUpdate:  # noqa: N802 - the library's name
        """Parse *data*."""
        ...


def _update_class() -> _WireUpdateClass:
    contract = FileDescriptorProto()
    pb.DESCRIPTOR.CopyToProto(contract)
    name = pb.CacheStateUpdate.DESCRIPTOR.name
    (update,) = (message for message in contract.message_type if message.name == name)
    (entries,) = (field for field in update.field if field.name == "prefixes")
    entries.type = FieldDescriptorProto.TYPE_BYTES
    entries.ClearField("type_name")
    pool = DescriptorPool()
    pool.Add(contract)
    descriptor = pool.FindMessageTypeByName(pb.CacheStateUpdate.DESCRIPTOR.full_name)
    return cast("_WireUpdateClass", GetMessageClass(descriptor))


WIRE_UPDATE: Final = _update_class()
"""Makes such messages."""


def read_update(data: bytes) -> WireUpdate | None:
    """Return a serialised CacheStateUpdate, or None where it does not parse.

    That an entry parses is known only once it has been read.

    Args:
        data: The message as received.
    """
    try:
        return WIRE_UPDATE.FromString(data)
    except DecodeError:
        return None
