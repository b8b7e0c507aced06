"""The examples on the page of resource files load, and become what the page says."""

import re
from pathlib import Path

import yaml
from resource_texts import load

PAGE = (Path(__file__).parents[3] / "docs" / "resources.md").read_text()
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
OBJECTS = [block for block in BLOCKS if block.startswith("apiVersion")]
LISTS = [block for block in BLOCKS if not block.startswith("apiVersion")]
PROMISE = re.compile(r"^  name: (\S+) # -> (\w+)$", re.MULTILINE)


def files() -> dict[str, str | bytes]:
    """Return every example as a file; a list says itself what it is called."""
    named = {f"{place}.yaml": block for place, block in enumerate(OBJECTS)}
    return {**named, **{re.findall(r"# (\S+)", block)[0]: block for block in LISTS}}


def test_examples_are_right_and_become_what_is_said() -> None:
    """All of them lie in one directory."""
    state = load(files())
    assert not state.errors
    promised = sorted(pair for block in OBJECTS for pair in PROMISE.findall(block))
    found = sorted(
        (key.name, state.name)
        for key, state in state.states.items()
        if key.kind not in {"ReferenceGrant", "EndpointsFile"}
    )
    assert found == promised


def test_every_state_that_files_decide_has_an_example() -> None:
    """Whoever sees a state can make it, and so unmake it."""
    shown = {state for block in OBJECTS for _name, state in PROMISE.findall(block)}
    assert shown >= {
        "Accepted",
        "UnsupportedApiFormat",
        "Incomplete",
        "CrossNamespaceNotGranted",
        "AmbiguousName",
        "MembersMissing",
    }


def test_every_kind_is_in_the_table() -> None:
    """With the short name that people type."""
    kinds = {yaml.safe_load(text)["kind"] for block in OBJECTS for text in block.split("---\n")}
    rows = dict(re.findall(r"^\| `(\w+)` \| `(\w+)` \|", PAGE, re.MULTILINE))
    assert kinds <= rows.keys()
    assert rows["InferenceProvider"] == "infprov"
