"""Which client may read and write which tenants, by the names in its certificate.

Rules of this file: what is not granted is denied; a client without any grant may do nothing. A
name is written with its kind in front, ``uri:``, ``dns:`` or ``cn:``, so that a certificate whose
common name looks like somebody's URI gains nothing.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from inferencecache.errors import InferenceCacheError

ANY_TENANT: Final = "*"
"""In a grant: every tenant there is."""


class Access(StrEnum):
    """What can be done to a tenant's state."""

    READ = "read"
    WRITE = "write"


class AccessDeniedError(InferenceCacheError):
    """A client may not do what it asked for.

    Args:
        access: What it wanted to do.
        tenant_id: To which tenant; None where it may do so to none.
    """

    def __init__(self, access: Access, tenant_id: str | None) -> None:
        tenant = "any tenant" if tenant_id is None else f"tenant {tenant_id!r}"
        super().__init__(f"this client may not {access.value} {tenant}")
        self.access = access
        self.tenant_id = tenant_id


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessGrant:
    """What the bearers of some names may do.

    Attributes:
        names: Names with their kind in front.
        read: Tenants whose state they may ask for; ``*`` means all.
        write: Tenants whose state they may change; ``*`` means all.
    """

    names: frozenset[str]
    read: frozenset[str]
    write: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantAccess:
    """What one client may do, all its grants together.

    Attributes:
        read: Tenants it may ask for.
        write: Tenants it may change.
    """

    read: frozenset[str] = frozenset()
    write: frozenset[str] = frozenset()

    def allows(self, access: Access, tenant_id: str) -> bool:
        """Tell whether *access* to the tenant is granted.

        Complexity: O(1).
        """
        tenants = self.read if access is Access.READ else self.write
        return tenant_id in tenants or ANY_TENANT in tenants

    def allows_any(self, access: Access) -> bool:
        """Tell whether *access* to some tenant is granted.

        Complexity: O(1).
        """
        return bool(self.read if access is Access.READ else self.write)


NO_ACCESS: Final = TenantAccess()


class AccessTable:
    """All grants, replaced as a whole, asked by name.

    Attributes:
        revision: How often the grants have been replaced.
    """

    __slots__ = ("_by_name", "revision")

    def __init__(self, grants: Iterable[AccessGrant] = ()) -> None:
        self._by_name: dict[str, TenantAccess] = {}
        self.revision = 0
        self.replace(grants)

    @property
    def is_empty(self) -> bool:
        """Whether nobody may do anything."""
        return not self._by_name

    def replace(self, grants: Iterable[AccessGrant]) -> None:
        """Put *grants* in force; what they do not say is denied from now on.

        Complexity: O(names and tenants in all grants).
        """
        by_name: dict[str, TenantAccess] = {}
        for grant in grants:
            for name in grant.names:
                held = by_name.get(name, NO_ACCESS)
                by_name[name] = TenantAccess(
                    read=held.read | grant.read, write=held.write | grant.write
                )
        self._by_name = by_name
        self.revision += 1

    def access_of(self, names: Collection[str]) -> TenantAccess:
        """Return what the bearer of *names* may do, under all of them together.

        Complexity: O(names).
        """
        held = [self._by_name[name] for name in names if name in self._by_name]
        if not held:
            return NO_ACCESS
        if len(held) == 1:
            return held[0]
        return TenantAccess(
            read=frozenset[str]().union(*(access.read for access in held)),
            write=frozenset[str]().union(*(access.write for access in held)),
        )
