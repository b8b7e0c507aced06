"""The control listener lets in whom it is told to, and nobody else."""

import hashlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from certificates import Authority, replace_file
from controlled import Controlled, bearer, controlled
from token_review_api import CONTROLLER, Cluster, cluster

from inferencecache.settings.auth import AuthSettings
from inferencecache.settings.control import ControlSettings
from inferencecache.settings.throwaway import throwaway_server_settings

CONTROLLER_AUDIENCE = "inferencecache.io/controller"
POLICY_AUDIENCE = "inferencecache.io/policy"
PROBE = b'{"backend":"b1","model":"m1","hashScheme":"vllm"}'
FREE = "127.0.0.1:0"


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Cluster]:
    """Run a cluster's API that knows a token per audience."""
    async with cluster(tmp_path) as running:
        running.add("for-controller", CONTROLLER, CONTROLLER_AUDIENCE)
        running.add("for-policy", CONTROLLER, POLICY_AUDIENCE)
        running.add("other", "system:serviceaccount:x:y", CONTROLLER_AUDIENCE, POLICY_AUDIENCE)
        yield running


@pytest.fixture
async def control(api: Cluster) -> AsyncIterator[Controlled]:
    """Run a server that asks that API."""
    auth = AuthSettings(allowed_controller_sa=CONTROLLER, service_account_dir=str(api.directory))
    async with controlled(throwaway_server_settings(auth=auth), api.environ) as running:
        yield running


async def test_each_endpoint_wants_a_token_for_its_audience(
    control: Controlled, api: Cluster
) -> None:
    """The token for one audience does not open the other, and each endpoint counts its own."""
    for method, path, body, token, status in (
        ("GET", "/snapshot", None, "for-controller", 200),
        ("POST", "/probe", PROBE, "for-controller", 200),
        ("GET", "/debug/state", None, "for-controller", 200),
        ("POST", "/debug/picker/explain", b"{}", "for-controller", 200),
        ("POST", "/picker/unsuppress", b'{"candidate":"x"}', "for-controller", 404),
        ("POST", "/policy", b'{"version":7}', "for-policy", 204),
    ):
        refused = await control.ask(method, path, body)
        assert (refused.status, refused.text) == (401, "unauthorized\n\n")
        assert "WWW-Authenticate" not in refused.headers
        assert refused.headers["X-Content-Type-Options"] == "nosniff"
        wrong = "for-policy" if token == "for-controller" else "for-controller"
        assert (await control.ask(method, path, body, headers=bearer(wrong))).status == 401
        assert (await control.ask(method, path, body, headers=bearer(token))).status == status
    for scope in ("snapshot", "probe", "debug", "picker", "policy"):
        name = f"inferencecache_{scope}_auth_total"
        pages = 2 if scope == "debug" else 1
        assert await control.metric(name, result="unauth") == 2 * pages
        assert await control.metric(name, result="ok") == pages
    asked = {(spec["token"], *spec["audiences"]) for spec in api.asked}
    assert asked == {
        (token, audience)
        for token in ("for-controller", "for-policy")
        for audience in (CONTROLLER_AUDIENCE, POLICY_AUDIENCE)
    }


async def test_another_account_is_forbidden(control: Controlled) -> None:
    """403 for a real token of somebody else."""
    reply = await control.ask("POST", "/policy", b'{"version":7}', headers=bearer("other"))
    assert (reply.status, reply.text) == (403, "forbidden\n\n")
    assert await control.metric("inferencecache_policy_auth_total", result="forbidden") == 1


async def test_authentication_comes_before_the_method(control: Controlled) -> None:
    """A stranger learns nothing about methods."""
    assert (await control.ask("GET", "/policy")).status == 401
    assert (await control.ask("GET", "/policy", headers=bearer("for-policy"))).status == 405


async def test_an_api_that_is_down_means_503(control: Controlled, api: Cluster) -> None:
    """It is nobody's fault who asks."""
    api.status = 500
    reply = await control.get("/snapshot", "for-controller")
    assert (reply.status, reply.text) == (503, "token review unavailable\n\n")
    assert await control.metric("inferencecache_snapshot_auth_total", result="error") == 1


async def test_an_attempt_that_breaks_is_counted_and_opens_nothing(
    control: Controlled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever goes wrong while somebody is being recognised is one error."""

    async def broken(*_arguments: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("inferencecache.transport.token_review.KubernetesReviewer.review", broken)
    reply = await control.get("/snapshot", "for-controller")
    assert (reply.status, reply.text) == (500, "internal error\n")
    assert await control.metric("inferencecache_snapshot_auth_total", result="error") == 1
    assert await control.metric("inferencecache_snapshot_auth_total", result="ok") is None


async def test_an_api_without_audiences_opens_nothing(control: Controlled, api: Cluster) -> None:
    """A token that is only somebody's is not one that was made for us."""
    api.knows_audiences = False
    assert (await control.get("/snapshot", "for-policy")).status == 401


async def test_guessing_is_slowed_down(control: Controlled, api: Cluster) -> None:
    """After ten refusals the peer is told to wait, and the API is not asked any more."""
    for number in range(10):
        assert (await control.get("/snapshot", f"guess-{number}")).status == 401
    reply = await control.get("/snapshot", "guess-10")
    assert (reply.status, reply.text) == (429, "too many failed attempts\n\n")
    assert 1 <= int(reply.headers["Retry-After"]) <= 60
    assert len(api.asked) == 10
    assert await control.metric("inferencecache_snapshot_auth_total", result="throttled") == 1


async def test_tokens_never_reach_the_log(control: Controlled, api: Cluster) -> None:
    """Neither accepted nor refused ones."""
    api.error = "token guess-1 is not known"
    await control.get("/snapshot", "guess-1")
    await control.get("/snapshot", "for-controller")
    assert control.log.of("auth_token_review_unauthenticated")
    assert "guess-1" not in control.log.text
    assert "for-controller" not in control.log.text
    (fields,) = control.log.of("controller_auth_enabled")
    assert fields["expected_sa"] == CONTROLLER


async def test_tokens_of_a_file_need_no_cluster(tmp_path: Path) -> None:
    """Several may be valid at a time; a changed file counts at once."""
    path = tmp_path / "tokens"
    replace_file(
        path, b"".join(hashlib.sha256(t).hexdigest().encode() + b"\n" for t in (b"a", b"b"))
    )
    auth = AuthSettings(token_file=str(path))
    async with controlled(throwaway_server_settings(auth=auth)) as control:
        statuses = [(await control.get("/snapshot", token)).status for token in ("a", "b", "c", "")]
        assert statuses == [200, 200, 401, 401]
        replace_file(path, hashlib.sha256(b"c").hexdigest().encode())
        statuses = [(await control.get("/snapshot", token)).status for token in ("a", "b", "c")]
        assert statuses == [401, 401, 200]
        replace_file(path, b"oops")
        assert (await control.get("/snapshot", "c")).status == 200
        assert len(control.log.of("control_token_reload")) == 1
        reloads = "inferencecache_token_file_reloads_total"
        assert await control.metric(reloads, result="taken") == 1
        assert await control.metric(reloads, result="refused") == 1


class Certified:
    """A server that knows its clients by certificate."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.authority = Authority()
        cert_file, key_file = self.authority.server().write(directory)
        ca_file = self.authority.write(directory / "clients.pem")
        control = ControlSettings(
            bind_address=FREE,
            tls_cert_file=str(cert_file),
            tls_key_file=str(key_file),
            tls_client_ca_file=str(ca_file),
        )
        auth = AuthSettings(client_names="uri:spiffe://x/controller,cn:admin")
        self.settings = throwaway_server_settings(control=control, auth=auth)

    def client(self, common_name: str = "", uri: str = "") -> ssl.SSLContext:
        """Return a client with a certificate of these names."""
        pair = self.authority.client(common_name, uri=uri)
        return self.authority.context(pair, self.directory)


async def test_certificates_are_enough(tmp_path: Path) -> None:
    """An accepted name opens; a real certificate of another name is forbidden; none is 401."""
    certified = Certified(tmp_path)
    async with controlled(certified.settings) as control:
        for client, status in (
            (certified.client(uri="spiffe://x/controller"), 200),
            (certified.client("admin"), 200),
            (certified.client("uri:spiffe://x/controller"), 403),
            (certified.authority.context(), 401),
        ):
            assert (await control.ask("GET", "/snapshot", ssl=client)).status == status


async def test_a_stranger_s_certificate_fails_in_the_handshake(tmp_path: Path) -> None:
    """Names mean nothing unless the authority vouches for them."""
    certified = Certified(tmp_path)
    forged = Authority().client("admin").write(tmp_path, "forged")
    context = certified.authority.context()
    context.load_cert_chain(*forged)
    async with controlled(certified.settings) as control:
        with pytest.raises(aiohttp.ClientError):
            await control.ask("GET", "/snapshot", ssl=context)
        with pytest.raises(aiohttp.ClientError):
            async with control.http.get(control.server.control_url.replace("https", "http")):
                pass


async def test_rotated_files_count_for_the_next_connection(tmp_path: Path) -> None:
    """Server certificate and client authority change without a restart."""
    certified = Certified(tmp_path)
    old = certified.client("admin")
    async with controlled(certified.settings) as control:
        assert (await control.ask("GET", "/snapshot", ssl=old)).status == 200
        fresh = Certified(tmp_path)
        await control.server.rotation.look()
        new = fresh.client("admin")
        async with aiohttp.ClientSession() as http:
            page = control.server.control_url + "/snapshot"
            with pytest.raises(aiohttp.ClientError):
                async with http.get(page, ssl=old):
                    pass
            async with http.get(page, ssl=new) as reply:
                assert reply.status == 200
        reloads = "inferencecache_tls_reloads_total"
        assert await control.metric(reloads, listener="control", result="taken") == 1
