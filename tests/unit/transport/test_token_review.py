"""TokenReview over real HTTPS: what is asked, and what is made of the answer."""

from pathlib import Path

import pytest
from certificates import Authority
from token_review_api import CONTROLLER, OWN_TOKEN, Cluster, cluster

from inferencecache.transport.start_error import StartError
from inferencecache.transport.system_clock import SystemClock
from inferencecache.transport.token_review import (
    KubernetesReviewer,
    ReviewUnavailableError,
    in_cluster,
)

SECOND_NS = 1_000_000_000


def reviewer_of(running: Cluster, timeout_ns: int = 30 * SECOND_NS) -> KubernetesReviewer:
    """Return what a pod of the cluster asks with."""
    where = in_cluster(running.environ, str(running.directory))
    return KubernetesReviewer(where, timeout_ns, SystemClock())


async def test_a_token_is_reviewed_with_its_audience(tmp_path: Path) -> None:
    """The audience is a list of one; the answer names user and audiences."""
    async with cluster(tmp_path) as running:
        running.add("t", CONTROLLER, "a", "b")
        reviewer = reviewer_of(running)
        review = await reviewer.review("t", "a")
        assert (review.authenticated, review.user.username) == (True, CONTROLLER)
        assert review.audiences == ("a",)
        assert not (await reviewer.review("t", "c")).authenticated
        assert (await reviewer.review("t", "")).authenticated
        assert running.asked == [
            {"token": "t", "audiences": ["a"]},
            {"token": "t", "audiences": ["c"]},
            {"token": "t"},
        ]
        await reviewer.close()


async def test_the_own_token_and_the_authority_are_read_anew(tmp_path: Path) -> None:
    """Kubernetes renews both while the pod runs; a broken authority changes nothing."""
    async with cluster(tmp_path) as running:
        running.add("t")
        reviewer = reviewer_of(running)
        (tmp_path / "token").write_text("expired")
        with pytest.raises(ReviewUnavailableError, match="401"):
            await reviewer.review("t", "")
        (tmp_path / "token").write_text(OWN_TOKEN)
        assert (await reviewer.review("t", "")).authenticated
        good = (tmp_path / "ca.crt").read_bytes()
        (tmp_path / "ca.crt").write_text("oops")
        assert (await reviewer.review("t", "")).authenticated
        Authority("stranger").write(tmp_path / "ca.crt")
        with pytest.raises(ReviewUnavailableError):
            await reviewer.review("t", "")
        (tmp_path / "ca.crt").write_bytes(good)
        assert (await reviewer.review("t", "")).authenticated
        (tmp_path / "token").unlink()
        with pytest.raises(ReviewUnavailableError):
            await reviewer.review("t", "")
        await reviewer.close()


@pytest.mark.parametrize("content", [b"", b" \n", "é".encode()])
async def test_without_an_authority_those_of_the_system_are_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    """A file that is empty for a moment keeps the last good one; at the start it is refused."""
    (tmp_path / "impostor").mkdir()
    async with cluster(tmp_path / "impostor") as impostor:
        impostor.add("t")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "impostor" / "ca.crt"))
        Authority("of the cluster").write(tmp_path / "ca.crt")
        (tmp_path / "token").write_text(OWN_TOKEN)
        where = in_cluster(impostor.environ, str(tmp_path))
        reviewer = KubernetesReviewer(where, 30 * SECOND_NS, SystemClock())
        (tmp_path / "ca.crt").write_bytes(content)
        with pytest.raises(ReviewUnavailableError, match="Certificate"):
            await reviewer.review("t", "")
        assert impostor.asked == []
        await reviewer.close()
        with pytest.raises(StartError, match="names no authority"):
            KubernetesReviewer(where, SECOND_NS, SystemClock())


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (500, b""),
        (403, b"{}"),
        (302, b""),
        (307, b""),
        (201, b""),
        (201, b"[]"),
        (201, b"{}"),
        (201, b'{"status":{"authenticated":"yes"}}'),
        (201, b'{"status":{"authenticated":true,"user":{"username":7}}}'),
        (201, b"\xff"),
        (201, b'{"status":' + b" " * 2_000_000 + b"{}}"),
        (201, b'{"status":' + b'{"x":' * 200_000),
        (201, b'{"status":{"x":' + b"[" * 200_000),
    ],
)
async def test_any_other_answer_is_no_word_at_all(
    tmp_path: Path, status: int, answer: bytes
) -> None:
    """Only a review that can be read may let somebody in."""
    async with cluster(tmp_path) as running:
        running.status, running.answer = status, answer
        reviewer = reviewer_of(running)
        with pytest.raises(ReviewUnavailableError):
            await reviewer.review("t", "")
        assert running.asked == [{"token": "t"}]  # and nobody else was
        await reviewer.close()


async def test_an_api_that_is_not_there_is_no_word_at_all(tmp_path: Path) -> None:
    """Refused connections and timeouts end alike."""
    async with cluster(tmp_path) as running:
        hurried = reviewer_of(running, timeout_ns=1)
        with pytest.raises(ReviewUnavailableError):
            await hurried.review("t", "")
        await hurried.close()
        reviewer = reviewer_of(running)
    with pytest.raises(ReviewUnavailableError):
        await reviewer.review("t", "")
    await reviewer.close()


def test_outside_a_cluster_there_is_nobody_to_ask(tmp_path: Path) -> None:
    """The reason says what is missing."""
    environ = {"KUBERNETES_SERVICE_HOST": "::1", "KUBERNETES_SERVICE_PORT": "443"}
    for given in ({}, {"KUBERNETES_SERVICE_HOST": "x"}, environ):
        with pytest.raises(StartError) as refused:
            in_cluster(given, str(tmp_path))
        assert refused.value.event == "in_cluster_config"
    (tmp_path / "token").write_text("t")
    where = in_cluster(environ, str(tmp_path))
    assert where.url == "https://[::1]:443"
    with pytest.raises(StartError) as refused:
        KubernetesReviewer(where, SECOND_NS, SystemClock())
    assert refused.value.event == "kube_client"
    (tmp_path / "ca.crt").write_text("oops")
    with pytest.raises(StartError):
        KubernetesReviewer(where, SECOND_NS, SystemClock())
