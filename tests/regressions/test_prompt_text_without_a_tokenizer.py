"""Text the plane cannot tokenize as the engine did is no hint and never an error."""

from field_rig import FieldRig, keys

TWO_TURNS = "user: hello\nassistant: hi\nuser: how are you?"


def test_prompt_text_fails_open_while_token_ids_match() -> None:
    """The engine's tokens match as ids; the same conversation as text gets no hint."""
    rig = FieldRig()
    rig.report("A", keys(64))

    by_text = rig.ask(prompt_text=TWO_TURNS)
    by_tokens = rig.ask(token_ids=range(1, 65))

    assert (by_text.reason_code, list(by_text.replica_scores)) == ("NO_HINT", [])
    assert by_tokens.reason_code == "PREFIX_MATCH"
    assert [(s.replica_id, s.matched_tokens) for s in by_tokens.replica_scores] == [("A", 64)]


def test_tokens_the_caller_sent_are_not_echoed() -> None:
    """token_ids come back only where the plane made them."""
    rig = FieldRig()
    rig.report("A", keys(64))

    assert not rig.ask(token_ids=range(1, 65)).token_ids
    assert not rig.ask(prompt_text=TWO_TURNS).token_ids
