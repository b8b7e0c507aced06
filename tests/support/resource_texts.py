"""Resource documents for tests, and loading them."""

from inferencecache.resources import (
    KindRegistry,
    LoadState,
    ResourceLoader,
    SourceFile,
    product_kinds,
)
from inferencecache.settings.resources import ResourceSettings

API_VERSION = "inferencecache.io/v1alpha1"


def document(kind: str, name: str, spec: str, *, namespace: str = "team-a") -> str:
    """Return one document; *spec* is YAML in flow style."""
    return (
        f"apiVersion: {API_VERSION}\n"
        f"kind: {kind}\n"
        f"metadata: {{name: {name}, namespace: {namespace}}}\n"
        f"spec: {spec}\n"
    )


def policy(spec: str = "{}", name: str = "default", namespace: str = "team-a") -> str:
    """Return a CachePolicy."""
    return document("CachePolicy", name, spec, namespace=namespace)


def tenant(spec: str = "{tenantID: a}", name: str = "default", namespace: str = "team-a") -> str:
    """Return a CacheTenant."""
    return document("CacheTenant", name, spec, namespace=namespace)


def together(*documents: str) -> str:
    """Return one text with several documents."""
    return "---\n".join(documents)


def load(
    files: dict[str, str | bytes],
    before: LoadState | None = None,
    *,
    settings: ResourceSettings | None = None,
    kinds: KindRegistry | None = None,
) -> LoadState:
    """Return the state after *files* were found."""
    loader = ResourceLoader(kinds or product_kinds(), settings or ResourceSettings())
    sources = [
        SourceFile(name=name, content=text if isinstance(text, bytes) else text.encode())
        for name, text in files.items()
    ]
    return loader.load(sources, before or LoadState())


def names(state: LoadState) -> list[str]:
    """Return the objects in force as people name them."""
    return [str(key) for key in state.objects]
