"""The example of the picker's page runs as it stands there."""

import json
import re
from pathlib import Path

from served_picker import SMALL, serve_picker

from inferencecache.clock import ManualClock
from inferencecache.picker.request import BodyFlaw
from inferencecache.transport.picker_convert import DECLARED_LENGTH_KEY

PAGE = (Path(__file__).parents[3] / "docs" / "picker.md").read_text()


async def test_the_example_routes_a_request() -> None:
    """What a gateway's author copies works."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(code, "docs/picker.md", "exec"), names)  # noqa: S102 - our own page
    async with serve_picker(SMALL, clock=ManualClock(1)) as served:
        endpoint, routed = await names["route"](served.target, b'{"model":"alias","prompt":"x"}')
        assert endpoint == "10.0.0.3:8000"
        assert json.loads(routed)["model"] == "a/longer-name"
        assert served.picker.plane.decisions.in_flight.total == 0


def test_the_page_names_every_flaw_and_header() -> None:
    """A reason that is not on the page cannot be looked up."""
    for flaw in BodyFlaw:
        assert f"`{flaw.value}`" in PAGE
    assert DECLARED_LENGTH_KEY in PAGE
