"""The control listener of a server, from its parts."""

from collections.abc import Callable, Mapping

from inferencecache.app.picker import Picker
from inferencecache.app.security import Security
from inferencecache.service import CachePlane
from inferencecache.service.match import Matcher
from inferencecache.service.picker_objects import PickerObjects
from inferencecache.service.probe import PlaneProbeTarget, Prober
from inferencecache.settings.server import ServerSettings
from inferencecache.transport import metrics_control as catalog
from inferencecache.transport.http_control import ControlListener
from inferencecache.transport.http_control_pages import ControlPages, ControlParts
from inferencecache.transport.metric_cells import LabelValues
from inferencecache.transport.metrics_control import ControlMetrics
from inferencecache.transport.picker_pages import PickerPages
from inferencecache.transport.policy_changes import PolicyChanges, PushResult
from inferencecache.transport.probe_runner import ProbeRunner
from inferencecache.transport.structured_log import EventLog
from inferencecache.transport.tls_listeners import http_context


class Control:
    """What operators, controllers and probers use.

    Args:
        plane: What they see and change.
        settings: Everything the server was told.
        security: Who may come in.
        log: Where it logs.

    Attributes:
        metrics: What is counted of it.
        changes: The way in which policies change.
    """

    def __init__(
        self, plane: CachePlane, settings: ServerSettings, security: Security, log: EventLog
    ) -> None:
        self._plane = plane
        self._settings = settings
        self._security = security
        self._log = log
        self._target = PlaneProbeTarget(
            plane.index, Matcher(plane.index, settings.ranking), plane.policies, plane.clock
        )
        self.metrics = ControlMetrics(plane.index, settings.metrics.labels_max)
        self.changes = PolicyChanges(plane.policy_layers, settings.policy, log)
        self._read_metrics()

    @property
    def is_warm(self) -> bool:
        """Whether anybody but probes has reported anything."""
        return self._plane.index.counters.updates > self._target.reports

    def listener(
        self, resources: Callable[[], object], objects: PickerObjects, picker: Picker
    ) -> ControlListener:
        """Return the listener, which is not listening yet.

        Args:
            resources: Returns the state of the resource files.
            objects: What can be picked.
            picker: Who picks.
        """
        settings = self._settings
        pages = ControlPages(
            ControlParts(
                plane=self._plane,
                changes=self.changes,
                probes=ProbeRunner(Prober(self._target)),
                metrics=self.metrics,
                resources=resources,
                picker=PickerPages(picker.records, picker.fleet.suppression, picker.rehearsal),
                manifests=objects.manifests_slices,
                push_body_bytes_max=settings.policy.push_body_bytes_max,
                probe_body_bytes_max=settings.control.probe_body_bytes_max,
                explain_body_bytes_max=settings.control.explain_body_bytes_max,
            )
        )
        files = self._security.control_tls
        return ControlListener(
            settings.control,
            pages.endpoints(self._security.authenticator),
            self._log,
            None if files is None else http_context(files),
        )

    def _read_metrics(self) -> None:
        """Show the numbers that others keep."""
        policies, read = self._plane.policies, self.metrics.read
        read(catalog.POLICY_PUSHES, lambda: _by_label(self.changes.pushes))
        read(catalog.POLICIES, lambda: {(): len(policies.snapshot.policies)})
        read(catalog.QUOTAS, lambda: {(): len(policies.snapshot.tenants)})
        read(catalog.POLICY_REVISION, lambda: {(): policies.revision})
        read(catalog.TLS_RELOADS, self._tls_reloads)
        read(catalog.TLS_EXPIRY, self._tls_expiry)
        tokens = self._security.tokens
        if tokens is not None:
            read(
                catalog.TOKEN_FILE_RELOADS,
                lambda: {("taken",): tokens.reloads, ("refused",): tokens.failures},
            )

    def _tls_reloads(self) -> dict[LabelValues, float]:
        numbers: dict[LabelValues, float] = {}
        for listener, files in self._security.tls_files.items():
            numbers[listener, "taken"] = files.reloads
            numbers[listener, "refused"] = files.failures
        return numbers

    def _tls_expiry(self) -> dict[LabelValues, float]:
        tls_files = self._security.tls_files
        return {
            (listener,): files.current.validity.not_after_s for listener, files in tls_files.items()
        }


def _by_label(counts: Mapping[PushResult, int]) -> dict[LabelValues, float]:
    return {(result.value,): count for result, count in counts.items()}
