"""A service with zygotes for tests that spoil nothing, and what two runs are compared by. A test file imports the fixtures."""
import re

import pytest

from support import daemon as daemons
from support import host
from support import warm

PROFILES = {"runs": 64, "access": [{"uid": 0, "profiles": ["basic", "strict", "data-science"], "runs": 64, "runs_per_minute": 1000000}]}


@pytest.fixture(scope="module", params=[pytest.param("demand", marks=pytest.mark.nightly), "ready"])
def folder(built, request):
    scratch, profiles = warm.scratch_profiles(warm=request.param)
    yield profiles
    scratch.cleanup()


@pytest.fixture(scope="module")
def kept(folder, no_stock):
    with daemons.Daemon(PROFILES, env={"BRIG_PRESETS": str(folder)}) as one:
        one.settle()
        with one.connect() as talk:
            for profile in "basic", "strict":
                warm.wait(talk, profile)
        yield one


@pytest.fixture
def talk(kept):
    with kept.connect() as made:
        yield made


@pytest.fixture
def sciences(talk):
    """The same connection, for runs of a profile that imports numpy and pandas ahead."""
    if not host.has_rootfs("data-science"):
        pytest.skip("needs the rootfs data-science: ./dev rootfs data-science")
    warm.wait(talk, "data-science")
    return talk


def told(run):
    return run.record["exit_reason"], run.record["exit_code"], run.record["signal"], run.stdout, run.stderr


def without_addresses(found):
    """Where its memory lies is every interpreter's own."""
    return tuple(re.sub(r"0x[0-9a-f]{6,}", "0x...", part) if isinstance(part, str) else part for part in found)


def assert_same(talk, program, **keys):
    forked, executed = talk.run(program, **keys), talk.run(program, cold=True, **keys)
    assert (forked.record["warm"], executed.record["warm"]) == (True, False)
    ours, theirs = without_addresses(told(forked)), without_addresses(told(executed))
    assert ours == theirs, f"forked: {ours}\nexecuted: {theirs}"
