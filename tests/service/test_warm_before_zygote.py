"""Cells that stood ready before their profile had a zygote are cells for its forks, like any other."""
import pytest

from rules import MANY
from support import daemon as daemons
from support import host, warm


@pytest.fixture
def service(no_stock):
    """Runs are warm; most of what stands ready was built before they could be."""
    scratch, profiles = warm.scratch_profiles("basic", ready=8)
    with daemons.Daemon(MANY, env={"BRIG_PRESETS": str(profiles)}) as one:
        assert host.poll(lambda: one.run("pass").record["warm"])
        yield one
    scratch.cleanup()


def test_cold_and_warm_runs_beside_them_are_what_was_asked_for(service):
    with service.connect() as talk:
        for _ in range(10):
            cold, forked = talk.run("print(1)", cold=True), talk.run("print(1)")
            assert (cold.reason, cold.record["warm"], cold.stdout) == ("exited", False, "1\n"), cold
            assert (forked.reason, forked.record["warm"], forked.stdout) == ("exited", True, "1\n"), forked
