"""Hits and misses side by side: every prefix that is held is found, and none that is not."""

from served_plane import ServedPlane, chain_entry, keys, update

PREFIXES = 8


async def test_every_held_prefix_is_found_and_no_other(served: ServedPlane) -> None:
    """Eight prompts of 128 tokens, a replica each, and eight that nobody has seen."""
    held = [keys(8, salt=number) for number in range(PREFIXES)]
    novel = [keys(8, salt=PREFIXES + number) for number in range(PREFIXES)]
    await served.report(
        *(update(f"r{number}", chain_entry(chain)) for number, chain in enumerate(held))
    )
    found = [await served.look_up(chain=chain) for chain in held]
    assert [answer.reason_code for answer in found] == ["PREFIX_MATCH"] * PREFIXES
    holders = [[score.replica_id for score in answer.replica_scores] for answer in found]
    assert holders == [[f"r{number}"] for number in range(PREFIXES)]
    assert {answer.replica_scores[0].matched_tokens for answer in found} == {128}
    missed = [await served.look_up(chain=chain) for chain in novel]
    assert "PREFIX_MATCH" not in {answer.reason_code for answer in missed}
    assert {score.matched_tokens for answer in missed for score in answer.replica_scores} == {0}
