"""Ask a running server where it would send a request."""

import asyncio
from typing import Any, Final
from urllib.parse import urlencode

from inferencecache.settings.get import ControlClientSettings
from inferencecache.transport.control_page import ControlPageError, fetch_control_page

PAGE: Final = "/debug/picker/explain"


def ask_server(
    settings: ControlClientSettings, body: bytes, parameters: dict[str, str]
) -> dict[str, Any]:
    """Return what the server says about *body*.

    Args:
        settings: Whom to ask.
        body: As a gateway would push it.
        parameters: Tenant, pool, class and request; those that are empty are left out.

    Raises:
        ConfigError: A file of the settings cannot be read.
        ControlPageError: The server does not answer, or with something else.
    """
    named = urlencode({name: text for name, text in parameters.items() if text})
    path = f"{PAGE}?{named}" if named else PAGE
    answer = asyncio.run(fetch_control_page(settings, path, body))
    if not isinstance(answer, dict) or "outcome" not in answer:
        raise ControlPageError(settings.url + PAGE, "the answer is no explanation")
    return answer
