"""Servers that tests talk to: brig-mcp with a brigd of its own, or before a service."""
import os
import sys

import pytest

from support import daemon as daemons
from support import host
from support import mcp as mcp_client

sys.path.insert(0, os.path.dirname(__file__)) # for what the tests of this folder share


@pytest.fixture(scope="session")
def built_mcp(jail):
    """The programs are there, and this host can make jails."""
    for name in ("brig-mcp", "brigd"):
        if not mcp_client.binary(name).exists():
            pytest.fail(f"{mcp_client.binary(name)} is missing: ./dev build")


@pytest.fixture
def start_mcp(built_mcp):
    """start_mcp("--reply", "text", env={...}) -> support.mcp.McpStdio. At the end of the test its input ends, it must go, and all that it said must have been valid."""
    started = []

    def start(*args, **kw):
        started.append(mcp_client.McpStdio(*args, **kw))
        return started[-1]
    yield start
    wrong = []
    for one in started:
        try:
            if one.status is None:
                one.close()
            one.check()
        except (AssertionError, mcp_client.Silent) as e:
            wrong.append(e)
        finally:
            one.abandon()
    if wrong:
        raise wrong[0]


@pytest.fixture
def mcp(start_mcp):
    """brig-mcp as a client's configuration starts it: no options, a brigd of its own."""
    return start_mcp()


@pytest.fixture(scope="session")
def mcp_service(built_mcp):
    """A brigd as a service that many servers share; `env` is what they find it by."""
    with daemons.Daemon({"runs": 128, "access": [{"uid": os.geteuid(), "profiles": ["basic", "strict", "filesystem", "network", "data-science"],
                                                  "runs": 128, "runs_per_minute": 1000000}]}) as daemon:
        daemon.settle()
        daemon.env_of_clients = {"BRIG_SOCKET": str(daemon.path)}
        yield daemon


@pytest.fixture
def nothing_left(jail):
    """No cell's process, group, mount or file is there that was not before."""
    before = host.Snapshot()
    yield
    left = before.left_since()
    assert not left, f"left behind: {left}"


@pytest.fixture
def start_http(built_mcp):
    """start_http("--progress", "1", env={...}, token=None) -> support.mcp.HttpServer"""
    if not mcp_client.binary("brig-mcp-http").exists():
        pytest.fail("brig-mcp-http is missing: ./dev build")
    started = []

    def start(*args, **kw):
        started.append(mcp_client.HttpServer(*args, **kw))
        return started[-1]
    yield start
    for one in started:
        one.close()
