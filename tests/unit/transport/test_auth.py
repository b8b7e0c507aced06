"""Who is let in, and how everybody else is refused."""

import asyncio
import hashlib
from pathlib import Path

import pytest
from log_lines import LogLines

from inferencecache.clock import ManualClock
from inferencecache.transport.auth import (
    REFUSALS,
    Attempt,
    Authenticator,
    AuthResult,
    KubernetesRule,
    WaysIn,
    bearer_token,
)
from inferencecache.transport.auth_peers import FailedAttempts
from inferencecache.transport.auth_tokens import TokenFile
from inferencecache.transport.token_review import Review, ReviewedUser, ReviewUnavailableError

SECOND_NS = 1_000_000_000
CONTROLLER = "system:serviceaccount:cache:controller"
AUDIENCE = "inferencecache.io/controller"
GOOD = Review(authenticated=True, user=ReviewedUser(CONTROLLER), audiences=(AUDIENCE,))


class Reviewer:
    """Answers what it is told to."""

    def __init__(self) -> None:
        self.reviews: dict[str, Review | None] = {"good": GOOD, "good-2": GOOD, "good-3": GOOD}
        self.asked: list[tuple[str, str]] = []
        self.is_down = False

    async def review(self, token: str, audience: str) -> Review | None:
        """Answer one question."""
        self.asked.append((token, audience))
        if self.is_down:
            raise ReviewUnavailableError("TimeoutError")
        return self.reviews.get(token, Review())


class Bench:
    """An authenticator with everything around it."""

    def __init__(
        self,
        *,
        tokens: TokenFile | None = None,
        names: frozenset[str] = frozenset(),
        audience: str = AUDIENCE,
        cache_entries_max: int = 32,
        with_cluster: bool = True,
    ) -> None:
        self.clock = ManualClock(1_000 * SECOND_NS)
        self.log = LogLines()
        self.reviewer = Reviewer()
        self.failures = FailedAttempts(
            failures_max=3, window_ns=60 * SECOND_NS, peers_max=8, clock=self.clock
        )
        rule = KubernetesRule(
            reviewer=self.reviewer,
            username=CONTROLLER,
            audience=audience,
            cache_ttl_ns=30 * SECOND_NS,
            cache_entries_max=cache_entries_max,
        )
        ways = WaysIn(names=names, tokens=tokens, kubernetes=rule if with_cluster else None)
        self.authenticator = Authenticator(ways, self.failures, self.clock, self.log)

    async def check(self, authorization: str = "", **attempt: object) -> AuthResult:
        """Try to come in."""
        given = {"peer": "192.0.2.1", "authorization": authorization, **attempt}
        return await self.authenticator.check(Attempt(**given))  # type: ignore[arg-type] # fields


@pytest.mark.parametrize(
    ("authorization", "result"),
    [
        ("", "unauth"),
        ("Bearer ", "unauth"),
        ("Bearer", "unauth"),
        ("Basic good", "unauth"),
        ("good", "unauth"),
        ("Bearer bad", "unauth"),
        ("Bearer good", "ok"),
        ("bEARER  good ", "ok"),
        ("BEARER good", "ok"),
    ],
)
async def test_the_header_decides(authorization: str, result: str) -> None:
    """The scheme may be in any case; without a token, nobody is asked."""
    bench = Bench()
    assert await bench.check(authorization) == result
    assert len(bench.reviewer.asked) == (bearer_token(authorization) != "")


async def test_another_account_is_forbidden() -> None:
    """A real token of somebody else is told apart from no token."""
    bench = Bench()
    other = ReviewedUser("system:serviceaccount:cache:other")
    bench.reviewer.reviews["t"] = Review(authenticated=True, user=other, audiences=(AUDIENCE,))
    assert await bench.check("Bearer t") == AuthResult.FORBIDDEN


@pytest.mark.parametrize("audiences", [(), ("https://kubernetes.default.svc",)])
async def test_the_answer_must_name_the_audience(audiences: tuple[str, ...]) -> None:
    """An API that has not looked at audiences has vouched for nothing."""
    bench = Bench()
    bench.reviewer.reviews["t"] = Review(
        authenticated=True, user=ReviewedUser(CONTROLLER), audiences=audiences
    )
    assert await bench.check("Bearer t") == AuthResult.UNAUTH
    assert bench.log.of("auth_token_review_unauthenticated") == [{"reason": "wrong audience"}]


async def test_without_an_audience_none_is_asked_for() -> None:
    """An empty audience is handed on as such, and accepts any."""
    bench = Bench(audience="")
    bench.reviewer.reviews["t"] = Review(authenticated=True, user=ReviewedUser(CONTROLLER))
    assert await bench.check("Bearer t") == AuthResult.OK
    assert bench.reviewer.asked == [("t", "")]


async def test_an_api_that_is_down_is_an_error_and_no_failed_attempt() -> None:
    """Neither an exception nor an empty answer counts against the sender."""
    bench = Bench()
    bench.reviewer.is_down = True
    for _ in range(5):
        assert await bench.check("Bearer good") == AuthResult.ERROR
    bench.reviewer.is_down = False
    bench.reviewer.reviews["none"] = None
    assert await bench.check("Bearer none") == AuthResult.ERROR
    assert await bench.check("Bearer good") == AuthResult.OK


async def test_why_a_token_is_refused_is_logged_without_the_token() -> None:
    """The API's reason helps an operator; the token must not help anybody."""
    bench = Bench()
    secret = "eyJhbGciOi-secret"
    bench.reviewer.reviews[secret] = Review(error=f"token {secret} has expired " + "x" * 500)
    assert await bench.check(f"Bearer {secret}") == AuthResult.UNAUTH
    (fields,) = bench.log.of("auth_token_review_unauthenticated")
    assert "has expired" in str(fields["reason"])
    assert secret not in bench.log.text
    assert len(str(fields["reason"])) == 200
    assert secret not in repr(Attempt(authorization=f"Bearer {secret}"))


async def test_an_accepted_token_is_not_asked_about_for_half_a_minute() -> None:
    """Each token on its own; refusals are asked about each time."""
    bench = Bench()
    for _ in range(3):
        assert await bench.check("Bearer good") == AuthResult.OK
        bench.clock.advance_ns(5 * SECOND_NS)
    assert len(bench.reviewer.asked) == 1
    assert await bench.check("Bearer good-2") == AuthResult.OK
    assert len(bench.reviewer.asked) == 2
    bench.clock.advance_ns(15 * SECOND_NS)
    assert await bench.check("Bearer good") == AuthResult.OK
    assert len(bench.reviewer.asked) == 3
    for _ in range(2):
        await bench.check("Bearer bad")
    assert len(bench.reviewer.asked) == 5


async def test_the_cache_makes_room_for_the_newest() -> None:
    """When it is full, what has expired goes first, then what expires soonest."""
    bench = Bench(cache_entries_max=2)
    for token in ("good", "good-2", "good-3"):
        assert await bench.check(f"Bearer {token}") == AuthResult.OK
        bench.clock.advance_ns(SECOND_NS)
        assert bench.authenticator.cached <= 2
    await bench.check("Bearer good-3")
    await bench.check("Bearer good-2")
    assert len(bench.reviewer.asked) == 3
    await bench.check("Bearer good")
    assert len(bench.reviewer.asked) == 4
    bench.clock.advance_ns(60 * SECOND_NS)
    await bench.check("Bearer good-2")
    assert bench.authenticator.cached == 1


async def test_a_peer_that_fails_too_often_is_not_asked_about() -> None:
    """The cluster is left alone; others, and tokens that are known here, are still let in."""
    bench = Bench()
    assert await bench.check("Bearer good-2") == AuthResult.OK
    for _ in range(3):
        assert await bench.check("Bearer bad") == AuthResult.UNAUTH
    asked = len(bench.reviewer.asked)
    assert await bench.check("Bearer bad") == AuthResult.THROTTLED
    assert await bench.check("Bearer good") == AuthResult.THROTTLED
    assert len(bench.reviewer.asked) == asked
    assert await bench.check("Bearer good-2") == AuthResult.OK
    assert await bench.check("Bearer good", peer="192.0.2.2") == AuthResult.OK
    attempt = Attempt(authorization="Bearer bad", peer="192.0.2.1")
    assert bench.authenticator.retry_after_s(attempt) == 60
    bench.clock.advance_ns(60 * SECOND_NS)
    assert await bench.check("Bearer good") == AuthResult.OK


async def test_attempts_at_the_same_time_are_attempts_too() -> None:
    """A peer cannot get more tokens reviewed by asking for all of them at once."""
    bench = Bench()
    gate = asyncio.Event()
    ask = bench.reviewer.review

    async def slow(token: str, audience: str) -> Review | None:
        await gate.wait()
        return await ask(token, audience)

    bench.reviewer.review = slow  # type: ignore[method-assign]
    attempts = [asyncio.create_task(bench.check(f"Bearer token-{number}")) for number in range(50)]
    await asyncio.sleep(0)
    gate.set()
    results = await asyncio.gather(*attempts)

    assert len(bench.reviewer.asked) == 3
    assert results.count(AuthResult.THROTTLED) == 47


async def test_requests_without_a_token_are_no_attempts() -> None:
    """Whoever shows nothing has guessed nothing."""
    bench = Bench()
    for _ in range(10):
        assert await bench.check() == AuthResult.UNAUTH
    assert len(bench.failures) == 0


async def test_a_certificate_with_an_accepted_name_needs_no_token() -> None:
    """With another name it is forbidden, unless a token helps."""
    bench = Bench(names=frozenset({"uri:spiffe://x/controller"}))
    names = frozenset({"cn:controller", "uri:spiffe://x/controller"})
    assert await bench.check(names=names) == AuthResult.OK
    stranger = frozenset({"cn:spiffe://x/controller"})
    assert await bench.check(names=stranger) == AuthResult.FORBIDDEN
    assert await bench.check("Bearer good", names=stranger) == AuthResult.OK


async def test_tokens_of_the_file_are_accepted_without_a_cluster(tmp_path: Path) -> None:
    """Any other token is refused at once."""
    path = tmp_path / "tokens"
    path.write_text(hashlib.sha256(b"static").hexdigest())
    clock = ManualClock(1_000 * SECOND_NS)
    bench = Bench(tokens=TokenFile(str(path), clock, print), with_cluster=False)
    assert await bench.check("Bearer static") == AuthResult.OK
    assert await bench.check("Bearer other") == AuthResult.UNAUTH
    assert await bench.check("Bearer \udcff") == AuthResult.UNAUTH


def test_a_rule_needs_an_account() -> None:
    """An empty name must not match an empty answer."""
    with pytest.raises(ValueError, match="account"):
        KubernetesRule(
            reviewer=Reviewer(), username="", audience="", cache_ttl_ns=1, cache_entries_max=1
        )


def test_every_refusal_has_an_answer() -> None:
    """Nothing but OK is without one."""
    assert set(REFUSALS) == set(AuthResult) - {AuthResult.OK}
