"""From TenantAccess objects to grants."""

from collections.abc import Iterator

from inferencecache.resources import LoadState
from inferencecache.resources.tenant_access import TENANT_ACCESS
from inferencecache.service.access import AccessGrant


def grants_of(load: LoadState) -> Iterator[AccessGrant]:
    """Yield what each object grants.

    Args:
        load: The objects in force.

    Complexity: O(objects).
    """
    for found in TENANT_ACCESS.objects_in(load):
        yield AccessGrant(
            names=frozenset(found.spec.clients),
            read=frozenset(found.spec.read or ()),
            write=frozenset(found.spec.write or ()),
        )
