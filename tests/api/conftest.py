"""brig-api with a brigd of its own, or before a service."""
import os

import pytest

from support import api as apis
from support import daemon as daemons
from support import host


@pytest.fixture(scope="session")
def built_api(jail):
    for path in (apis.binary(), apis.binary().with_name("brigd")):
        if not path.exists():
            pytest.fail(f"{path} is missing: ./dev build")


@pytest.fixture(scope="module")
def api(built_api):
    """All interfaces, without a token, and a private brigd."""
    with apis.ApiServer() as one:
        yield one


@pytest.fixture
def start_api(built_api, tmp_path):
    started = []

    def start(*args, **kw):
        started.append(apis.ApiServer(*args, scratch=tmp_path, **kw))
        return started[-1]
    yield start
    for one in started:
        one.__exit__()


@pytest.fixture
def service(built_api):
    """service(**config) -> a brigd that is a service; `env` is what clients find it by."""
    started = []

    def start(config=None, **access):
        own = {"runs": 64, "access": [{"uid": os.geteuid(), "profiles": ["basic"], "runs": 64, "runs_per_minute": 1000000, **access}], **(config or {})}
        daemon = daemons.Daemon(own)
        started.append(daemon.__enter__())
        daemon.settle()
        daemon.env = {"BRIG_SOCKET": str(daemon.path)}
        return daemon
    yield start
    for one in started:
        one.__exit__(None, None, None)


@pytest.fixture
def nothing_left(jail):
    """No cell's process, group, mount or file is there that was not before."""
    before = host.Snapshot()
    yield
    left = before.left_since()
    assert not left, f"left behind: {left}"
