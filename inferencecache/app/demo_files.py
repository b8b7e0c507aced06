"""The files of a demo: what the picker and the gateway are told, and what to send them.

::

    DIR/resources/fleet.yaml       worker set, provider, pool and backend
    DIR/secrets/provider.key       the key that the gateway shows to the provider
    DIR/provider/accepted.key      the key that the provider takes
    DIR/tokenizer/                 how the engines turn text into tokens
    DIR/first.json, second.json    two requests that begin alike
    DIR/hosted.json                one that only the provider can serve
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from inferencecache.clock import NS_PER_MS
from inferencecache.settings.demo import DemoSettings
from inferencecache.simulation.byte_tokenizer import tokenizer_files

TENANT: Final = "demo"
MODEL: Final = "demo-model"
HOSTED_MODEL: Final = "hosted-model"
SCHEME: Final = "vllm"
BLOCK_TOKENS: Final = 16
POOL: Final = "demo"
PROVIDER: Final = "hosted"

_GROUP: Final = "inferencecache.io/v1alpha1"
_WORKERS: Final = "engines"
_QUESTIONS: Final = {
    "first.json": "What is a prefix?",
    "second.json": "Who computes what is not cached?",
}
_SHARED: Final = (
    "You answer questions about the handbook below.\n\n"
    "An engine computes a prompt before it can answer, and keeps what it has computed in blocks of "
    "{block} tokens. A prompt that begins like an earlier one need not be computed again as far as "
    "the two agree, if it comes to the same engine, and if the engine has not needed the room for "
    "others meanwhile. Engines say which blocks they store and which they drop. An index follows "
    "all of them, so that somebody who has a prompt can ask which engine knows how much of it. A "
    "picker does: it adds what is waiting at each engine already, and says where the first token "
    "will come soonest. A gateway sends the request there, passes the answer on, and tells the "
    "picker how long it took and how much was cached. When an engine or a provider fails again and "
    "again, the picker leaves it alone for a while, and then lets one request try it.\n"
)
_SHARED_TIMES: Final = 3


class DemoFiles:
    """Writes the files of one demo.

    Args:
        directory: Where; it is there.
        settings: How fast the engines are.
    """

    def __init__(self, directory: Path, settings: DemoSettings) -> None:
        self.directory = directory
        self._settings = settings

    @property
    def resources(self) -> Path:
        """The directory of objects."""
        return self.directory / "resources"

    @property
    def secrets(self) -> Path:
        """The directory of the gateway's keys."""
        return self.directory / "secrets"

    @property
    def accepted_key(self) -> Path:
        """The key that the provider takes."""
        return self.directory / "provider" / "accepted.key"

    def write(self, key: str) -> None:
        """Write everything that does not depend on addresses.

        Args:
            key: The provider's.
        """
        for name, content in tokenizer_files().items():
            self._put(f"tokenizer/{name}", content)
        for name, question in _QUESTIONS.items():
            self._put(name, _chat(MODEL, question))
        self._put("hosted.json", _chat(HOSTED_MODEL, "Are you there?"))
        self._put("secrets/provider.key", f"{key}\n".encode())
        self._put("provider/accepted.key", f"{key}\n".encode())
        self.resources.mkdir()

    def write_objects(self, engines: Mapping[str, str], provider: str) -> None:
        """Write the objects.

        Args:
            engines: Where each engine answers, by name.
            provider: Where the provider does.
        """
        documents = [
            self._worker_set(engines),
            _object("InferenceProvider", PROVIDER, _provider(), "kinference.buoyant.io/v1alpha1"),
            _object("GatewayBackend", PROVIDER, _backend(provider), "gateway.linkerd.io/v1alpha1"),
            _object("InferencePool", POOL, _pool()),
        ]
        text = yaml.safe_dump_all(documents, sort_keys=False)
        self._put("resources/fleet.yaml", text.encode())

    def _worker_set(self, engines: Mapping[str, str]) -> dict[str, Any]:
        spec = {
            "models": [{"name": MODEL}],
            "endpoints": [{"name": name, "address": where} for name, where in engines.items()],
            "engine": "vllm",
            "metricsURL": "http://{address}/metrics",
            "tokenizeURL": "http://{address}/tokenize",
            "blockSizeTokens": BLOCK_TOKENS,
            "hashScheme": SCHEME,
            "indexTenant": TENANT,
            "tokenizer": str(self.directory / "tokenizer"),
            "priors": {
                "prefillTokensPerSecond": self._settings.prefill_tokens_per_s,
                "baseTTFTMs": self._settings.base_ns // NS_PER_MS,
            },
        }
        return _object("InferenceWorkerSet", _WORKERS, spec)

    def _put(self, name: str, content: bytes) -> None:
        path = self.directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)


def _chat(model: str, question: str) -> bytes:
    messages = [
        {"role": "system", "content": _SHARED.format(block=BLOCK_TOKENS) * _SHARED_TIMES},
        {"role": "user", "content": question},
    ]
    return msgspec.json.encode({"model": model, "messages": messages})


def _object(kind: str, name: str, spec: dict[str, Any], version: str = _GROUP) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _provider() -> dict[str, Any]:
    """Return a provider that can also stand in for the engines."""
    model = {"name": HOSTED_MODEL, "aliases": [MODEL]}
    return {"backendRef": {"name": PROVIDER}, "api": "OpenAI", "models": [model]}


def _backend(address: str) -> dict[str, Any]:
    return {"baseURL": f"http://{address}", "auth": {"secretFile": "provider.key"}}


def _pool() -> dict[str, Any]:
    tiers = [
        {"name": "local", "members": [{"kind": "InferenceWorkerSet", "name": _WORKERS}]},
        {"name": "paid", "members": [{"kind": "InferenceProvider", "name": PROVIDER}]},
    ]
    return {"tiers": tiers}
