"""Hold each gRPC request against what its client's certificate may do."""

from collections.abc import Callable
from typing import Any, Protocol

import grpc

from inferencecache.service.access import (
    Access,
    AccessDeniedError,
    AccessTable,
    TenantAccess,
)
from inferencecache.transport.tls_names import grpc_peer_names

Context = grpc.aio.ServicerContext[Any, Any]


class TenantGuard(Protocol):
    """Decides which requests may pass."""

    def allows(self, method: str, context: Context, access: Access, tenant_id: str) -> bool:
        """Tell whether the caller may; a refusal is counted."""
        ...

    def allows_any(self, method: str, context: Context, access: Access) -> bool:
        """Tell whether the caller may for some tenant; a refusal is counted."""
        ...


class OpenGuard:
    """Lets everything pass, for listeners that do not know their clients."""

    def allows(self, _method: str, _context: Context, _access: Access, _tenant_id: str) -> bool:
        """Return true."""
        return True

    def allows_any(self, _method: str, _context: Context, _access: Access) -> bool:
        """Return true."""
        return True


class CertificateGuard:
    """Asks the table of grants by the names in the caller's certificate.

    Args:
        table: The grants.
        count: Told the method of each refused request.
    """

    def __init__(self, table: AccessTable, count: Callable[[str], None]) -> None:
        self._table = table
        self._count = count

    def allows(self, method: str, context: Context, access: Access, tenant_id: str) -> bool:
        """Tell whether the caller's certificate gives it *access* to the tenant."""
        if self._access(context).allows(access, tenant_id):
            return True
        self._count(method)
        return False

    def allows_any(self, method: str, context: Context, access: Access) -> bool:
        """Tell whether the caller's certificate gives it *access* to any tenant."""
        if self._access(context).allows_any(access):
            return True
        self._count(method)
        return False

    def _access(self, context: Context) -> TenantAccess:
        return self._table.access_of(grpc_peer_names(context.auth_context()))


def require(guard: TenantGuard, method: str, context: Context, need: tuple[Access, str]) -> None:
    """Let pass or raise.

    Args:
        guard: Decides.
        method: Name of the RPC.
        context: The call.
        need: The access, and the tenant.

    Raises:
        AccessDeniedError: The caller may not.
    """
    access, tenant_id = need
    if not guard.allows(method, context, access, tenant_id):
        raise AccessDeniedError(access, tenant_id)


def require_any(guard: TenantGuard, method: str, context: Context, access: Access) -> None:
    """Let pass who has *access* to some tenant, before a stream says for which; else raise.

    Args:
        guard: Decides.
        method: Name of the RPC.
        context: The call.
        access: The access.

    Raises:
        AccessDeniedError: The caller has it to no tenant.
    """
    if not guard.allows_any(method, context, access):
        raise AccessDeniedError(access, None)
