"""A lookup with nothing to look up is answered, not refused."""

import pytest
from field_rig import FieldRig, keys


@pytest.mark.parametrize(
    "fields",
    [
        {"token_ids": range(1, 16)},
        {"token_ids": []},
        {"block_hashes": [], "prefix_hash": b""},
        {"prompt_text": ""},
        {"prompt_text": "hello"},
        {},
    ],
    ids=["15-tokens", "no-tokens", "empty-chain", "empty-prompt", "no-tokenizer", "nothing"],
)
@pytest.mark.parametrize("is_filled", [False, True], ids=["cold", "filled"])
def test_nothing_to_look_up_is_no_hint(fields: dict[str, object], *, is_filled: bool) -> None:
    """No replica is named: without a hash there is no affinity either."""
    rig = FieldRig()
    if is_filled:
        rig.report("A", keys(48))

    answer = rig.ask(**fields)

    assert answer.reason_code == "NO_HINT"
    assert not answer.replica_scores
    assert not answer.token_ids
