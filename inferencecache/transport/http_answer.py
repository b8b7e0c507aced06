"""The few shapes an HTTP answer has."""

from aiohttp import web


def refusal(status: int, text: str, headers: dict[str, str] | None = None) -> web.Response:
    """Return an error as plain text that no browser takes for anything else."""
    return web.Response(
        status=status,
        text=text,
        headers={"X-Content-Type-Options": "nosniff", **(headers or {})},
    )


def json_answer(text: str) -> web.Response:
    """Return a page of JSON; *text* ends with a newline."""
    return web.Response(body=text.encode(), headers={"Content-Type": "application/json"})
