"""What packages export exists, is documented, and imports without side effects."""

import importlib
import inspect
import logging
import os
import pkgutil
import sys
from pathlib import Path

import pytest

import inferencecache

EXPORTING = [
    module.name
    for module in pkgutil.iter_modules(inferencecache.__path__, "inferencecache.")
    if module.ispkg and not module.name.endswith((".v1alpha1", ".kinference"))
]


@pytest.mark.parametrize("name", EXPORTING)
def test_exports_exist_once(name: str) -> None:
    """``__all__`` names real attributes, each once; the linter keeps them in order."""
    package = importlib.import_module(name)
    exported = list(getattr(package, "__all__", []))
    assert len(exported) == len(set(exported))
    assert all(hasattr(package, attribute) for attribute in exported)


@pytest.mark.parametrize("name", EXPORTING)
def test_packages_and_exports_are_documented(name: str) -> None:
    """Whoever calls ``help`` gets an answer."""
    package = importlib.import_module(name)
    assert package.__doc__
    for attribute in getattr(package, "__all__", []):
        exported = getattr(package, attribute)
        if inspect.isclass(exported) or inspect.isfunction(exported):
            assert exported.__doc__, attribute


def test_importing_everything_leaves_logging_alone() -> None:
    """A library does not configure its host's log."""
    before = list(logging.getLogger().handlers)
    for module in pkgutil.walk_packages(inferencecache.__path__, "inferencecache."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    assert logging.getLogger().handlers == before


@pytest.mark.skipif(
    "INFERENCECACHE_TESTS_FOR_WHEEL" not in os.environ, reason="only where a wheel is under test"
)
def test_the_installed_package_is_tested() -> None:
    """The tests import the wheel, not the checkout: a file missing from the wheel is noticed."""
    assert Path(inferencecache.__file__).is_relative_to(sys.prefix)
