"""Rules about the code that no linter knows."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "inferencecache"
GENERATED = {"v1alpha1", "kinference"}
BANNED_NAMES = {"utils", "helpers", "common", "misc", "base", "manager"}
MODULE_LINES_MAX = 400
HANDLER_LINES_MAX = 12

EXCEPT_EXCEPTION = {
    "inferencecache/picker/pipeline/guard.py": "third parties' plugins may raise anything",
    "inferencecache/transport/tokenize_guard.py": "templates and tokenizers may raise anything",
    "inferencecache/transport/cache_handler.py": "LookupRoute never ends in an error",
    "inferencecache/transport/rpc_table.py": "the gRPC boundary",
    "inferencecache/transport/gateway_http.py": "the HTTP boundary",
    "inferencecache/transport/http_pages.py": "the HTTP boundary",
    "inferencecache/transport/http_control.py": "the HTTP boundary",
    "inferencecache/transport/subscriber.py": "no batch of an engine ends the loop",
}
"""The only modules that may catch everything, and as what."""

UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")


def sources(directory: Path) -> list[Path]:
    """Return the hand-written modules under *directory*."""
    return sorted(
        path
        for path in directory.rglob("*.py")
        if not GENERATED & set(path.relative_to(ROOT).parts)
    )


def named(path: Path) -> str:
    """Return *path* as shown in a failure."""
    return path.relative_to(ROOT).as_posix()


OWN = sources(PACKAGE)
EVERYTHING = [
    path
    for part in ("inferencecache", "tests", "benchmarks", "golden_vectors")
    for path in sources(ROOT / part)
]
every_own_module = pytest.mark.parametrize("path", OWN, ids=named)
every_module = pytest.mark.parametrize("path", EVERYTHING, ids=named)


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield every function in *path*."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


@every_module
def test_modules_stay_small(path: Path) -> None:
    """A module that grows past the limit has a second idea in it."""
    assert len(path.read_text().splitlines()) <= MODULE_LINES_MAX


@every_module
def test_files_are_named_after_one_idea(path: Path) -> None:
    """A drawer for odds and ends has no place."""
    assert path.stem not in BANNED_NAMES


@every_module
def test_nothing_is_left_unfinished(path: Path) -> None:
    """A note to self belongs into an issue."""
    comments = [
        token.string
        for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
        if token.type == tokenize.COMMENT
    ]
    assert not [comment for comment in comments if UNFINISHED.search(comment)]


@every_own_module
def test_everything_is_caught_only_at_boundaries(path: Path) -> None:
    """A broad except hides bugs; the few that must exist are named here."""
    broad = [
        node.lineno
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or (isinstance(node.type, ast.Name) and node.type.id == "Exception"))
    ]
    assert not broad or named(path) in EXCEPT_EXCEPTION


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("transport/*_handler.py")), ids=named)
def test_handlers_only_convert_and_call(path: Path) -> None:
    """A method of a handler that grows has logic that belongs into the service."""
    too_long = [
        f"{function.name}: {count}"
        for function in functions(path)
        if (count := body_lines(function)) > HANDLER_LINES_MAX
    ]
    assert not too_long


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of *function*'s body without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0  # type: ignore[operator] # parsed nodes have ends


@pytest.mark.parametrize(
    "path",
    [*sources(PACKAGE / "index"), *sources(PACKAGE / "ranking")],
    ids=named,
)
def test_costs_are_stated(path: Path) -> None:
    """Every public method and function of the hot core says what it costs."""
    tree = ast.parse(path.read_text())
    silent = [
        name
        for name, node in public_functions(tree)
        if "Complexity:" not in (ast.get_docstring(node) or "")
    ]
    assert not silent


def public_functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield public functions and methods of public classes that do work of their own."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node.name, node
        if (
            isinstance(node, ast.ClassDef)
            and not node.name.startswith("_")
            and not is_protocol(node)
        ):
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and does_work(method):
                    yield f"{node.name}.{method.name}", method


def does_work(method: ast.FunctionDef) -> bool:
    """Return whether *method* is public and no mere property, which must be cheap anyway."""
    decorators = {getattr(decorator, "id", "") for decorator in method.decorator_list}
    return not method.name.startswith("_") and "property" not in decorators


def is_protocol(node: ast.ClassDef) -> bool:
    """Return whether *node* only describes what others must offer."""
    return any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases)


@pytest.mark.parametrize("path", sources(ROOT / "tests"), ids=named)
def test_tests_do_not_wait(path: Path) -> None:
    """A test that sleeps is slow when it passes and wrong when the machine is slow."""
    calls = [
        node.lineno
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", getattr(node.func, "id", "")) == "sleep"
        and not (node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0)
    ]
    assert not calls


@pytest.mark.parametrize("path", sources(ROOT / "tests"), ids=named)
def test_tests_say_what_they_are_about(path: Path) -> None:
    """A test's docstring states the behaviour; its name is not a ticket number."""
    for function in functions(path):
        if function.name.startswith("test_"):
            assert ast.get_docstring(function), function.name
            assert not re.search(r"issue_?\d|bug_?\d|gh_?\d", function.name)


def test_the_core_never_awaits() -> None:
    """The core is synchronous: on one event loop each of its calls is atomic."""
    for name in (
        "index",
        "ranking",
        "policy",
        "events",
        "gateway",
        "resources",
        "service",
        "simulation",
        "fingerprint",
    ):
        for path in sources(PACKAGE / name) or [PACKAGE / f"{name}.py"]:
            if path.exists():
                nodes = list(ast.walk(ast.parse(path.read_text())))
                assert not [n for n in nodes if isinstance(n, (ast.Await, ast.AsyncFunctionDef))], (
                    named(path)
                )
