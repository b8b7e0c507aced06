"""Settings whose names are taken, and that are refused for as long as they would do nothing.

A flag that is accepted and ignored is worse than an error, most of all one that promises safety.
"""

from typing import Final

_NO_CONTROL_LISTENER: Final = "there is no control listener yet, so nothing would be served there"
_NO_TLS: Final = "the gRPC listener cannot serve TLS yet and would stay in plaintext"

REFUSED: Final = {
    "snapshot-bind-address": _NO_CONTROL_LISTENER,
    "allowed-controller-sa": _NO_CONTROL_LISTENER,
    "insecure-disable-auth": _NO_CONTROL_LISTENER,
    "controller-audience": _NO_CONTROL_LISTENER,
    "policy-audience": _NO_CONTROL_LISTENER,
    "tls-cert-file": _NO_TLS,
    "tls-key-file": _NO_TLS,
    "tokenizer-models-dir": "the server cannot tokenize yet; prompt_text is answered with NO_HINT",
}
"""Flag without dashes -> why it is refused."""
