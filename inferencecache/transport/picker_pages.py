"""What operators see of the picker on the control listener, and the one thing they can do there."""

import re
from typing import Any, Final

import msgspec
from aiohttp import web

from inferencecache.clock import NS_PER_MS
from inferencecache.picker.choosing import Suppression
from inferencecache.picker.decisions import DecisionRecord, DecisionRecords
from inferencecache.service.rfc3339 import rfc3339
from inferencecache.transport.http_answer import json_answer, refusal
from inferencecache.transport.http_control import PageRequest
from inferencecache.transport.http_control_json import json_text, plain
from inferencecache.transport.picker_rehearsal import Rehearsal, RehearsalError

LIFT_BODY_BYTES_MAX: Final = 4_096

DECISION_PARAMETERS: Final = ("request_id", "skip")
"""What the page of decisions can be asked for."""

_SHOWN_MAX: Final = 100
_IS_COUNT: Final = re.compile(r"[0-9]{1,9}")


class _Lift(msgspec.Struct, forbid_unknown_fields=True):
    candidate: str


class PickerPages:
    """Makes the answers.

    Args:
        records: The last Picks.
        suppression: Who is left alone.
        rehearsal: Says where a request would go.
    """

    def __init__(
        self, records: DecisionRecords, suppression: Suppression, rehearsal: Rehearsal
    ) -> None:
        self._records = records
        self._suppression = suppression
        self._rehearsal = rehearsal

    async def decisions(self, request: PageRequest) -> web.Response:
        """Show a hundred Picks, newest first: of one request, or behind the first *skip*."""
        skip = request.query.get("skip", "0")
        if not _IS_COUNT.fullmatch(skip):
            return refusal(400, "skip is not allowed; expected a number from 0 to 999999999\n")
        most = int(skip) + _SHOWN_MAX
        found = self._records.find(request.query.get("request_id", ""), most)[int(skip) :]
        return json_answer(json_text({"decisions": [_shown(record) for record in found]}))

    async def explain(self, request: PageRequest) -> web.Response:
        """Show what a Pick for a body would say, which goes nowhere."""
        try:
            answer = await self._rehearsal.answer(request.body, request.query)
        except RehearsalError as error:
            return refusal(400, f"{error}\n")
        return json_answer(json_text(answer))

    async def unsuppress(self, request: PageRequest) -> web.Response:
        """Let a destination be picked again at once."""
        try:
            lift = msgspec.json.decode(request.body, type=_Lift)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return refusal(400, 'the body must be {"candidate": "..."}\n')
        lifted = self._suppression.lift(lift.candidate)
        if not lifted:
            return refusal(404, "no such candidate has failed\n")
        return json_answer(json_text({"lifted": lifted}))


def _shown(record: DecisionRecord) -> dict[str, Any]:
    """Return *record* as people read it: a time as a date, a duration in milliseconds."""
    shown: dict[str, Any] = plain(record)
    shown["at"] = rfc3339(shown.pop("atNs"))
    shown["durationMs"] = shown.pop("durationNs") / NS_PER_MS
    return shown
