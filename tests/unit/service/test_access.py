"""What clients may do, by the names in their certificates."""

from inferencecache.resources import ResourceLoader, SourceFile, product_kinds
from inferencecache.resources.model import LoadState
from inferencecache.service.access import Access, AccessGrant, AccessTable
from inferencecache.service.access_resources import grants_of
from inferencecache.settings.resources import ResourceSettings

GATEWAY = "uri:spiffe://cluster/ns/a/sa/gateway"


def grant(*names: str, read: str = "", write: str = "") -> AccessGrant:
    """Return a grant; tenants are separated by spaces."""
    return AccessGrant(
        names=frozenset(names), read=frozenset(read.split()), write=frozenset(write.split())
    )


def may(table: AccessTable, *names: str, tenant: str = "a") -> tuple[bool, bool]:
    """Return whether the bearer may read and write."""
    access = table.access_of(frozenset(names))
    return access.allows(Access.READ, tenant), access.allows(Access.WRITE, tenant)


def test_what_is_not_granted_is_denied() -> None:
    """No names, unknown names and other tenants get nothing."""
    table = AccessTable([grant(GATEWAY, read="a", write="b")])
    assert may(table) == may(table, "uri:other") == (False, False)
    assert may(table, GATEWAY) == (True, False)
    assert may(table, GATEWAY, tenant="b") == (False, True)
    assert may(table, GATEWAY, tenant="") == (False, False)


def test_a_name_of_another_kind_is_another_name() -> None:
    """A common name that looks like somebody's URI is not that URI."""
    table = AccessTable([grant("uri:x", read="a")])
    assert may(table, "cn:x", "dns:x", "cn:uri:x") == (False, False)


def test_grants_add_up_over_objects_and_names() -> None:
    """Two grants of one name, or one of each of two names, hold together."""
    table = AccessTable([grant("dns:x", read="a"), grant("dns:x", write="a")])
    assert may(table, "dns:x") == (True, True)
    table.replace([grant("dns:x", read="a"), grant("cn:y", write="a")])
    assert may(table, "dns:x", "cn:y") == (True, True)


def test_a_star_stands_for_every_tenant() -> None:
    """Also for those that come later, and for the empty one."""
    table = AccessTable([grant("dns:x", read="*")])
    assert may(table, "dns:x", tenant="any") == (True, False)
    assert may(table, "dns:x", tenant="") == (True, False)


def test_replacing_takes_away_what_is_not_said_again() -> None:
    """There is nothing but the last word."""
    table = AccessTable([grant("dns:x", read="a")])
    revision = table.revision
    table.replace([])
    assert may(table, "dns:x") == (False, False)
    assert table.revision == revision + 1


def test_objects_become_grants() -> None:
    """A TenantAccess object says what its clients may do."""
    text = b"""
apiVersion: inferencecache.io/v1alpha1
kind: TenantAccess
metadata: {name: gateway, namespace: a}
spec:
  clients: [uri:spiffe://cluster/ns/a/sa/gateway, cn:gateway]
  read: [a]
---
apiVersion: inferencecache.io/v1alpha1
kind: TenantAccess
metadata: {name: nameless, namespace: a}
spec:
  clients: [gateway]
  read: [a]
"""
    loader = ResourceLoader(product_kinds(), ResourceSettings())
    load = loader.load([SourceFile(name="a.yaml", content=text)], LoadState())
    assert [error.field for error in load.errors] == ["spec.clients[0]"]
    assert list(grants_of(load)) == [grant(GATEWAY, "cn:gateway", read="a")]
