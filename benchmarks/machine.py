"""What the numbers were measured on."""

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.measure import median_us

TARGET_MACHINE_JOINING_US = 3.4
"""What joining 512 hashes takes on the machine for which the targets were set."""

PACKAGES = ("grpcio", "protobuf", "xxhash", "uvloop", "ai-dynamo-runtime")


def describe() -> dict[str, str]:
    """Return name and value of what matters for speed."""
    facts = {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "Python": _interpreter(),
        "load at the start": " ".join(f"{load:.2f}" for load in os.getloadavg()),
        "joining 512 hashes": f"{joining_us():.1f} us ({TARGET_MACHINE_JOINING_US} us where the "
        "targets were set)",
    }
    return facts | {name: _version(name) for name in PACKAGES}


def joining_us() -> float:
    """Time something fixed and close to what is measured, to compare machines and moments by."""
    hashes = [number.to_bytes(8, "big") for number in range(512)]
    return median_us(lambda: b"".join(hashes), budget_s=0.3)


def slowness() -> float:
    """Return how many times longer this machine takes than the one the targets were set for."""
    return joining_us() / TARGET_MACHINE_JOINING_US


def _interpreter() -> str:
    """Return which Python this is, and whose: builds of one version differ by a fifth."""
    name = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{name}, {Path(sys.executable).resolve()}"


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return platform.processor()
    names = [
        line.partition(":")[2].strip()
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("model name")
    ]
    return names[0] if names else platform.processor()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
