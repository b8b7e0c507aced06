"""Server certificates of every kind of key that OpenSSL takes."""

from collections.abc import Callable
from typing import Final

from certificates import LOOPBACK, Pair, signed_by_itself
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448, ed25519, rsa

Make = Callable[[], Pair]

KINDS: Final[dict[str, Make]] = {
    "P-256": lambda: signed_by_itself(ec.generate_private_key(ec.SECP256R1()), LOOPBACK),
    "P-384": lambda: signed_by_itself(ec.generate_private_key(ec.SECP384R1()), LOOPBACK),
    "RSA 2048": lambda: signed_by_itself(rsa.generate_private_key(65_537, 2_048), LOOPBACK),
    "RSA 4096": lambda: signed_by_itself(rsa.generate_private_key(65_537, 4_096), LOOPBACK),
    "RSA that may sign": lambda: signed_by_itself(
        rsa.generate_private_key(65_537, 2_048), LOOPBACK, may_sign=True
    ),
    "P-256 that may not sign": lambda: signed_by_itself(
        ec.generate_private_key(ec.SECP256R1()), LOOPBACK, may_sign=False
    ),
    "RSA that may not sign": lambda: signed_by_itself(
        rsa.generate_private_key(65_537, 2_048), LOOPBACK, may_sign=False
    ),
    "P-224": lambda: signed_by_itself(ec.generate_private_key(ec.SECP224R1()), LOOPBACK),
    "P-521": lambda: signed_by_itself(ec.generate_private_key(ec.SECP521R1()), LOOPBACK),
    "secp256k1": lambda: signed_by_itself(ec.generate_private_key(ec.SECP256K1()), LOOPBACK),
    "brainpool": lambda: signed_by_itself(ec.generate_private_key(ec.BrainpoolP256R1()), LOOPBACK),
    "Ed25519": lambda: signed_by_itself(ed25519.Ed25519PrivateKey.generate(), LOOPBACK),
    "Ed448": lambda: signed_by_itself(ed448.Ed448PrivateKey.generate(), LOOPBACK),
    "DSA": lambda: signed_by_itself(dsa.generate_private_key(2_048), LOOPBACK),
}
"""What OpenSSL loads as a server's certificate, by name."""
