"""Fetch a page of a server's control listener."""

import asyncio
import json
import ssl
from pathlib import Path
from typing import Any, Final

import aiohttp

from inferencecache.clock import NS_PER_S
from inferencecache.errors import ConfigError, InferenceCacheError
from inferencecache.settings.get import ControlClientSettings

_PIECE_BYTES: Final = 65_536
_REASON_BYTES_MAX: Final = 200
_OK: Final = 200


class ControlPageError(InferenceCacheError):
    """There is no such page to be had.

    Args:
        url: Where it should be.
        reason: Why not, in a few words.
    """

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"{url}: {reason}")
        self.url = url
        self.reason = reason


async def fetch_control_page(
    settings: ControlClientSettings, path: str, body: bytes | None = None
) -> Any:  # noqa: ANN401 - JSON
    """Return what a page says.

    Args:
        settings: Whom to ask, and what to show.
        path: The page, from its slash.
        body: What to post to it; None asks for it without.

    Raises:
        ConfigError: A file of the settings cannot be read.
        ControlPageError: There is no answer, or it is not the page.
    """
    url = settings.url.rstrip("/") + path
    headers = {"Authorization": f"Bearer {_token(settings)}"} if settings.token_file else {}
    tls = _context(settings) if url.startswith("https://") else True
    timeout_s = settings.timeout_ns / NS_PER_S
    try:
        async with (
            asyncio.timeout(timeout_s),
            aiohttp.ClientSession() as session,
            session.request(
                "GET" if body is None else "POST",
                url,
                data=body,
                headers=headers,
                ssl=tls,
                allow_redirects=False,
            ) as answer,
        ):
            page = await _body(answer, settings.answer_bytes_max)
    except TimeoutError:
        raise ControlPageError(url, f"no answer within {timeout_s:g} s") from None
    except (aiohttp.ClientError, ValueError, OSError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ControlPageError(url, reason) from error
    if answer.status != _OK:
        said = ascii(page[:_REASON_BYTES_MAX].decode("utf-8", "replace").strip())
        raise ControlPageError(url, f"HTTP status {answer.status}: {said}")
    try:
        return json.loads(page)
    except (ValueError, RecursionError) as error:
        raise ControlPageError(url, "the answer is no JSON") from error


async def _body(answer: aiohttp.ClientResponse, bytes_max: int) -> bytes:
    body = bytearray()
    async for piece in answer.content.iter_chunked(_PIECE_BYTES):
        body += piece
        if len(body) > bytes_max:
            raise ValueError(f"an answer of more than {bytes_max} bytes")
    return bytes(body)


def _token(settings: ControlClientSettings) -> str:
    try:
        token = Path(settings.token_file).read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no ASCII text"
        raise ConfigError(
            field="bearer-token-file",
            value=settings.token_file,
            allowed=f"a readable file with a token ({reason})",
        ) from error
    if not token or not token.isprintable():
        raise ConfigError(
            field="bearer-token-file", value=settings.token_file, allowed="a file with one token"
        )
    return token


def _context(settings: ControlClientSettings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.ca_file or None)
    except (OSError, ValueError) as error:
        raise _file_error("control-ca-file", settings.ca_file, error) from error
    if settings.cert_file:
        try:
            context.load_cert_chain(settings.cert_file, settings.key_file)
        except (OSError, ValueError) as error:
            raise _file_error("control-client-cert-file", settings.cert_file, error) from error
    return context


def _file_error(field: str, path: str, error: Exception) -> ConfigError:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return ConfigError(field=field, value=path, allowed=f"a readable PEM file ({reason})")
