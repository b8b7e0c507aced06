"""Where the installed package comes from."""

import json
from importlib.metadata import Distribution, PackageNotFoundError
from typing import Final

UNKNOWN: Final = "unknown"


def installed_commit() -> str:
    """Return the commit that the package was installed from, as the installer has noted it."""
    try:
        noted = Distribution.from_name("inferencecache").read_text("direct_url.json")
        commit = json.loads(noted or "{}").get("vcs_info", {}).get("commit_id", UNKNOWN)
    except (PackageNotFoundError, ValueError, AttributeError):
        return UNKNOWN
    return str(commit)
