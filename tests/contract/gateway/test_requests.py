"""What goes in comes out: bodies, headers, answers, and what the picker is told."""

import json
from pathlib import Path

from served_gateway import USAGE, serve_gateway, serve_upstream, worker

BODY = b'{ "model" : "m", "messages": [{"role": "user", "content": "hi"}], "n": 1.0 }'


async def test_a_request_goes_where_the_picker_says(tmp_path: Path) -> None:
    """With the model's own name in it; the answer comes back as it is, and both reports arrive."""
    async with (
        serve_upstream() as upstream,
        serve_gateway(tmp_path, worker(upstream.address)) as served,
    ):
        answer = await served.chat(BODY, headers={"X-Request-Id": "r1"})
        assert (answer.status, json.loads(answer.body)["usage"]) == (200, USAGE)
        assert answer.headers["X-Inference-Requested-Model"] == "m"
        assert answer.headers["x-request-id"] == "r1"
        ((path, headers, body),) = upstream.requests
        assert path == "/v1/chat/completions"
        assert body == BODY.replace(b'"m"', b'"real-name"')
        assert headers["content-length"] == str(len(body))
        assert headers["accept-encoding"] == "identity"
        await served.settled()
        assert served.reported("ReportFirstToken") == 1
        assert served.reported("ReportFinalToken") == 1
        assert served.reported("Abort") == served.reported("Abort", "unknown") == 0
