"""Fixtures of the tests about control groups: where cells live, and what holds for them."""
import os
import pathlib
import secrets

import pytest

from support import host


@pytest.fixture
def v2():
    """Where the unified hierarchy is mounted."""
    if "cgroup2" not in host.kinds_of_groups() or "cgroup" in host.kinds_of_groups():
        pytest.skip("needs unified cgroup v2")
    return pathlib.Path("/sys/fs/cgroup")


@pytest.fixture
def systemd(v2):
    if not os.path.isdir("/run/systemd/system"):
        pytest.skip("needs a systemd that runs")


@pytest.fixture
def new_group(needs_root, v2):
    """A group of this test at the top, which nobody else manages, with everything to hand out; gone afterwards."""
    for name in ("memory", "pids", "cpu", "io"):
        (v2 / "cgroup.subtree_control").write_text(f"+{name}")
    path = v2 / f"brig-test-{secrets.token_hex(4)}"
    path.mkdir()
    yield path
    left = [str(folder) for folder, _, _ in os.walk(path, topdown=False)]
    for folder in left:
        host.poll(lambda folder=folder: removed(folder))
    assert left == [str(path)], f"left behind: {left}"


def removed(folder):
    try:
        os.rmdir(folder)
    except FileNotFoundError:
        pass
    except OSError:
        return False
    return True
