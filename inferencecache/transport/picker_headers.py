"""Which metadata of a Pick plugins see as the headers of the request.

A plugin needs no credential, and what it sees it may log or send on. Gateways pass on headers of
all products, so a name is judged by the words in it, however they are joined; a name that only
sounds like a credential is left out, too.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import grpc

Context = grpc.aio.ServicerContext[Any, Any]

_ABOUT_THE_CALL: Final = frozenset({"te", "content-type", "user-agent"})

_CREDENTIAL_NAME: Final = re.compile(
    r"authorization|authentication|bearer|cookie|credential|jwt|oidc|passphrase|passw(?:or)?d"
    r"|secret|signature|token(?!s|iz)"
    r"|(?:^|[-_.])(?:auth|pwd|sig)(?:$|[-_.])"
    r"|(?:access|account|admin|api|auth|functions?|license|master|private|subscription)[-_.]?key"
)
"""Words of which one makes a name that of a credential; ``tokens`` and ``tokenizer`` do not."""

_CREDENTIAL_VALUE: Final = re.compile(r"\s*(?:basic|bearer|digest|negotiate)\s", re.IGNORECASE)
"""How HTTP's own schemes begin, whatever the header is called."""


def passed_headers(context: Context) -> Mapping[str, str]:
    """Return the headers of the request that its caller passes on as metadata of the Pick.

    Names come in lower case, values of a name that is given twice with a comma between them; gRPC
    bounds them all together. Binary values, credentials, and what is about the call are none.
    """
    headers: dict[str, str] = {}
    for name, value in context.invocation_metadata() or ():
        if isinstance(value, str) and _is_passed(name, value):
            headers[name] = f"{headers[name]},{value}" if name in headers else value
    return MappingProxyType(headers)


def _is_passed(name: str, value: str) -> bool:
    """Return whether plugins may see the header."""
    if name in _ABOUT_THE_CALL or name.startswith("grpc-"):
        return False
    return not (_CREDENTIAL_NAME.search(name) or _CREDENTIAL_VALUE.match(value))
