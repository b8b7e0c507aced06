"""The pages of the control listener."""

import asyncio
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from inferencecache.policy import PolicyPushError
from inferencecache.service import CachePlane
from inferencecache.service.offload import replica_states
from inferencecache.service.probe import Stage
from inferencecache.service.probe_body import (
    ProbeBodyError,
    decode_probe_request,
    encode_probe_result,
)
from inferencecache.service.snapshot_body import snapshot_body
from inferencecache.transport.auth import Authenticator
from inferencecache.transport.drive import drive
from inferencecache.transport.giving_way import giving_way
from inferencecache.transport.http_answer import json_answer, refusal
from inferencecache.transport.http_control import Endpoint, Page, PageRequest
from inferencecache.transport.http_control_json import json_text, present
from inferencecache.transport.metrics_control import AuthScope, ControlMetrics
from inferencecache.transport.picker_pages import (
    DECISION_PARAMETERS,
    LIFT_BODY_BYTES_MAX,
    PickerPages,
)
from inferencecache.transport.picker_rehearsal import REHEARSAL_PARAMETERS
from inferencecache.transport.policy_changes import PolicyChanges
from inferencecache.transport.probe_runner import ProbeRunner

_NAME_SHOWN_MAX: Final = 60
_TOO_LARGE: Final = "http: request body too large\n"
_TOO_LARGE_TO_EXPLAIN: Final = (
    "the body is too large; expected at most {} bytes, --control-max-explain-bytes of the server\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlParts:
    """What the pages show and change.

    Attributes:
        plane: The cache plane.
        changes: Takes policy pushes.
        probes: Runs self-tests.
        metrics: Counts.
        resources: Returns the state of the resource files, made of plain values.
        picker: What operators see of the picker.
        picker: The picker's own pages.
        manifests: Returns worker sets, providers and pools with their status, in slices.
        push_body_bytes_max: Largest policy push.
        probe_body_bytes_max: Largest probe request.
        explain_body_bytes_max: Largest body to be explained.
    """

    plane: CachePlane
    changes: PolicyChanges
    probes: ProbeRunner
    metrics: ControlMetrics
    resources: Callable[[], object]
    picker: PickerPages
    manifests: Callable[[], Generator[None, None, object]]
    push_body_bytes_max: int
    probe_body_bytes_max: int
    explain_body_bytes_max: int


class ControlPages:
    """Makes the answers.

    Args:
        parts: What they are about.
    """

    def __init__(self, parts: ControlParts) -> None:
        self._parts = parts

    def endpoints(
        self, authenticator_of: Callable[[AuthScope], Authenticator | None]
    ) -> dict[str, Endpoint]:
        """Return what is served, by path.

        Args:
            authenticator_of: Returns who decides about a scope; asked once per scope.
        """
        deciding = {scope: authenticator_of(scope) for scope in AuthScope}

        def endpoint(
            scope: AuthScope,
            page: Page,
            methods: tuple[str, ...] = ("GET",),
            limit: tuple[int, str] = (0, _TOO_LARGE),
        ) -> Endpoint:
            return Endpoint(
                methods=methods,
                page=page,
                authenticator=deciding[scope],
                count=lambda result: self._parts.metrics.authenticated(scope, result),
                body_bytes_max=limit[0],
                too_large=limit[1],
            )

        push_limit = (self._parts.push_body_bytes_max, f"decode policy snapshot: {_TOO_LARGE}")
        probe_limit = (self._parts.probe_body_bytes_max, f"decode probe request: {_TOO_LARGE}")
        explain_max = self._parts.explain_body_bytes_max
        explain_limit = (explain_max, _TOO_LARGE_TO_EXPLAIN.format(explain_max))
        lift_limit = (LIFT_BODY_BYTES_MAX, f"unsuppress: {_TOO_LARGE}")
        return {
            "/snapshot": endpoint(AuthScope.SNAPSHOT, self._snapshot),
            "/policy": endpoint(AuthScope.POLICY, self._policy, ("POST", "PUT"), push_limit),
            "/probe": endpoint(AuthScope.PROBE, self._probe, ("POST",), probe_limit),
            "/debug/state": endpoint(AuthScope.DEBUG, _asked(self._debug_state)),
            "/debug/policy": endpoint(AuthScope.DEBUG, _asked(self._debug_policy)),
            "/debug/resources": endpoint(AuthScope.DEBUG, _asked(self._debug_resources)),
            "/debug/picker/resources": endpoint(AuthScope.DEBUG, _asked(self._debug_manifests)),
            "/debug/decisions": endpoint(
                AuthScope.DEBUG, _asked(self._parts.picker.decisions, DECISION_PARAMETERS)
            ),
            "/debug/picker/explain": endpoint(
                AuthScope.DEBUG,
                _asked(self._parts.picker.explain, REHEARSAL_PARAMETERS),
                ("POST",),
                explain_limit,
            ),
            "/picker/unsuppress": endpoint(
                AuthScope.PICKER, self._parts.picker.unsuppress, ("POST",), lift_limit
            ),
        }

    async def _snapshot(self, _request: PageRequest) -> web.Response:
        snapshot = await drive(self._parts.plane.index.snapshot_slices())
        body = await asyncio.to_thread(giving_way, lambda: snapshot_body(snapshot))
        return json_answer(body)

    async def _policy(self, request: PageRequest) -> web.Response:
        try:
            await self._parts.changes.push(request.body)
        except PolicyPushError as error:
            return refusal(400, f"{error}\n")
        return web.Response(status=204)

    async def _probe(self, request: PageRequest) -> web.Response:
        try:
            probe = decode_probe_request(request.body)
        except ProbeBodyError as error:
            return refusal(400, f"{error}\n")
        result = await self._parts.probes.run(probe)
        for stage, outcome in zip(Stage, (result.ingest, result.routing, result.t2), strict=True):
            self._parts.metrics.probed(stage, outcome)
        return json_answer(encode_probe_result(result))

    async def _debug_state(self, _request: PageRequest) -> web.Response:
        index = self._parts.plane.index
        snapshot, held_entries = await drive(index.snapshot_slices()), index.entries

        def shown() -> str:
            return json_text(
                {
                    "totalPrefixes": snapshot.total_prefixes,
                    "heldEntries": held_entries,
                    "tenants": snapshot.tenants,
                    "replicas": [present(state) for state in replica_states(snapshot)],
                }
            )

        return json_answer(await asyncio.to_thread(giving_way, shown))

    async def _debug_policy(self, _request: PageRequest) -> web.Response:
        return await _shown(self._parts.plane.policy_layers.moment().view)

    async def _debug_resources(self, _request: PageRequest) -> web.Response:
        state = self._parts.resources()
        return await _shown(lambda: state)

    async def _debug_manifests(self, _request: PageRequest) -> web.Response:
        manifests = await drive(self._parts.manifests())
        return await _shown(lambda: manifests)


def _asked(page: Page, parameters: tuple[str, ...] = ()) -> Page:
    """Return *page* for requests that ask for nothing but *parameters*."""
    allowed = f"one of the parameters {', '.join(parameters)}" if parameters else "no parameters"

    async def checked(request: PageRequest) -> web.Response:
        unknown = next((name for name in request.query if name not in parameters), None)
        if unknown is not None:
            name = ascii(unknown[:_NAME_SHOWN_MAX])
            return refusal(400, f"{name} is not allowed; expected {allowed}\n")
        return await page(request)

    return checked


async def _shown(make: Callable[[], object]) -> web.Response:
    """Return what *make* makes as a page; it may have ten thousand parts, so a thread does it."""
    return json_answer(await asyncio.to_thread(giving_way, lambda: json_text(make())))
