"""Every kind of the product, in the order in which people meet them."""

from typing import Final

from inferencecache.resources.cache_policy import CACHE_POLICY
from inferencecache.resources.cache_tenant import CACHE_TENANT
from inferencecache.resources.endpoints_file import ENDPOINTS_FILE
from inferencecache.resources.gateway_backend import GATEWAY_BACKEND
from inferencecache.resources.inference_pool import INFERENCE_POOL
from inferencecache.resources.inference_provider import INFERENCE_PROVIDER
from inferencecache.resources.inference_worker_set import INFERENCE_WORKER_SET
from inferencecache.resources.kind import KindRegistry
from inferencecache.resources.model_rewrite import MODEL_REWRITE
from inferencecache.resources.picker_policy import PICKER_POLICY
from inferencecache.resources.reference_grant import REFERENCE_GRANT
from inferencecache.resources.tenant_access import TENANT_ACCESS

_KINDS: Final = (
    CACHE_POLICY,
    CACHE_TENANT,
    TENANT_ACCESS,
    INFERENCE_WORKER_SET,
    INFERENCE_PROVIDER,
    INFERENCE_POOL,
    PICKER_POLICY,
    MODEL_REWRITE,
    REFERENCE_GRANT,
    GATEWAY_BACKEND,
    ENDPOINTS_FILE,
)


def product_kinds() -> KindRegistry:
    """Return a registry of all kinds of the product."""
    return KindRegistry(_KINDS)
