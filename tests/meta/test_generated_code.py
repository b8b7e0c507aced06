"""Generated code is what the checked-in contract generates."""

import sys
from importlib.resources import files
from pathlib import Path
from shutil import which

import pytest
from grpc_tools import protoc

ROOT = Path(__file__).parents[2]
PROTO_ROOT = ROOT / "proto"
PROTOS = sorted(PROTO_ROOT.rglob("*.proto"))


@pytest.fixture(scope="module")
def regenerated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with freshly generated code."""
    out = tmp_path_factory.mktemp("generated")
    plugins = [
        f"--plugin=protoc-gen-{name}={plugin(f'protoc-gen-{name}')}"
        for name in ("mypy", "mypy_grpc")
    ]
    for proto in PROTOS:
        arguments = [
            "protoc",
            f"-I{PROTO_ROOT}",
            f"-I{files('grpc_tools') / '_proto'}",
            *plugins,
            f"--python_out={out}",
            f"--grpc_python_out={out}",
            f"--mypy_out={out}",
            f"--mypy_grpc_out={out}",
            str(proto.relative_to(PROTO_ROOT)),
        ]
        assert protoc.main(arguments) == 0
    return out


def plugin(name: str) -> str:
    """Return the path of a protoc plugin of this environment."""
    beside_python = Path(sys.executable).parent / name
    found = str(beside_python) if beside_python.exists() else which(name)
    assert found, f"{name} is not installed"
    return found


def test_generated_code_is_current(regenerated: Path) -> None:
    """Whoever changes a proto also checks in what it generates."""
    fresh = {path.relative_to(regenerated): path.read_text() for path in regenerated.rglob("*.py*")}
    assert fresh
    for name, text in fresh.items():
        assert (ROOT / name).read_text() == text, f"{name} differs; generate it again"


def test_nothing_generated_is_left_over(regenerated: Path) -> None:
    """A message that is gone from the contract leaves no module behind."""
    for directory in {
        path.parent.relative_to(regenerated) for path in regenerated.rglob("*_pb2.py")
    }:
        checked_in = {path.name for path in (ROOT / directory).glob("*_pb2*")}
        assert checked_in == {path.name for path in (regenerated / directory).glob("*_pb2*")}
