"""The picker's page says which test holds which rule, and that is true of every rule."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "picker.md").read_text()
NUMBERED = {
    **dict.fromkeys(range(1, 30), "A"),
    **dict.fromkeys(range(30, 51), "B"),
    **dict.fromkeys(range(51, 63), "C"),
    **dict.fromkeys(range(63, 71), "D"),
    **dict.fromkeys(range(71, 78), "E"),
    **dict.fromkeys(range(78, 85), "F"),
    **dict.fromkeys(range(85, 88), "G"),
    **dict.fromkeys(range(88, 91), "H"),
    **dict.fromkeys(range(91, 96), "I"),
}
FIELD_CASES = {"F45", "F46", "F47", "F49", "F52", "F53", "F55", "F56"}
ALL = {f"{letter}{number}" for number, letter in NUMBERED.items()} | FIELD_CASES

RANGE = re.compile(r"([A-I])(\d{1,2})(?:(?:-| to )\1(\d{1,2}))?")


def rules_in(text: str) -> set[str]:
    """Return the rules that *text* names, ranges spelt out."""
    return {
        f"{letter}{number}"
        for letter, first, last in RANGE.findall(text)
        for number in range(int(first), int(last or first) + 1)
    }


def rows() -> dict[str, set[str]]:
    """Return the rules that each file is said to hold."""
    table = PAGE.split("## Which test holds which rule")[1]
    found = re.findall(r"^\| ([^|]+) \| `([^`]+)` \|$", table, re.MULTILINE)
    return {path: rules_in(rules) for rules, path in found}


def rules_of(path: str) -> set[str]:
    """Return the rules that the docstrings of tests in *path* name."""
    functions = [
        node
        for node in ast.walk(ast.parse((ROOT / path).read_text()))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    tests = [node for node in functions if node.name.startswith("test_")]
    return set().union(*(rules_in(ast.get_docstring(node) or "") for node in tests))


def test_every_rule_has_a_test() -> None:
    """Ninety-five of them, and the faults that others had."""
    assert len(NUMBERED) == 95
    assert set().union(*rows().values()) == ALL


def test_every_row_is_true() -> None:
    """Each file holds just what the page says, by the docstrings of its tests."""
    assert {path: rules_of(path) for path in rows()} == rows()


def test_files_beside_the_table_exist() -> None:
    """And every file that it names."""
    named = re.findall(r"`(tests/[^`]+)`", PAGE)
    assert [path for path in named if not (ROOT / path).exists()] == []
