"""A service that cannot start, or was stopped: its clients are told why, and nothing runs beside it, without its quotas and its audit."""
import os
import pathlib

import pytest

from support import host, service

FAILURE = pathlib.Path("/run/brig/failure")
MISTAKE = "runz"


def refused(*options, user=service.MEMBER):
    """What is said to who runs a program and may not."""
    done = service.brig(user, "run", *options, "-", stdin="print('ran')")
    assert (done.returncode, done.stdout) == (125, ""), done
    return done.stderr


def test_a_client_whose_connection_starts_a_service_that_cannot_is_told_why(config):
    config('{"%s": 1}' % MISTAKE)
    said = refused()
    assert MISTAKE in said and "/etc/brig/brig.json" in said and said.count("\n") == 1, said


def test_a_restart_with_a_bad_file_fails_and_keeps_the_socket(config):
    config("{}")
    service.systemctl("start", service.UNIT, check=True)
    config('{"%s": 1}' % MISTAKE)
    assert service.systemctl("restart", service.UNIT).returncode != 0
    assert os.path.exists("/run/brig/brig.sock") and MISTAKE in refused()


@pytest.fixture
def few_starts(anew):
    """systemd gives up after four."""
    service.reload(few="[Unit]\nStartLimitBurst=4")
    yield
    service.reload(few="")


def test_when_systemd_has_given_up_clients_are_told_the_same(few_starts, config):
    config('{"%s": 1}' % MISTAKE)
    for _ in range(10):
        said = refused()
        assert MISTAKE in said, said
        if service.show("ActiveState", service.SOCKET) != "active":
            break
    assert service.show("ActiveState", service.SOCKET) == "failed" and not os.path.exists("/run/brig/brig.sock")
    said = refused()
    assert said.startswith("brig: this host's service is down: ") and MISTAKE in said and "systemctl status brigd" in said and "--private" in said, said


def test_a_mended_service_serves_and_its_failure_is_forgotten(config):
    config('{"%s": 1}' % MISTAKE)
    refused()
    assert MISTAKE in FAILURE.read_text()
    config("{}")
    service.systemctl("reset-failed", service.UNIT, service.SOCKET)
    assert service.run(service.MEMBER, "print(1)")["stdout"] == "1\n" and FAILURE.read_text() == ""


def test_a_service_that_was_stopped_is_not_passed_over(anew):
    service.systemctl("stop", service.SOCKET, check=True)
    said = refused()
    assert said.startswith("brig: this host's service is down") and "--private" in said, said
    assert service.run(service.MEMBER, "print(1)", "--private")["stdout"] == "1\n"


def test_where_the_service_was_disabled_runs_are_private(anew):
    service.systemctl("disable", "--now", service.SOCKET, check=True)
    try:
        assert service.run(service.MEMBER, "print(1)")["stdout"] == "1\n"
    finally:
        service.systemctl("enable", service.SOCKET, check=True)


@pytest.mark.parametrize("text, mode, says", [('{"private_runs": false}', 0o644, "private_runs is false"), ('{}', 0o600, "Permission denied"),
                                              ('{"%s": 1}' % MISTAKE, 0o644, MISTAKE)], ids=["forbidden", "unreadable", "wrong"])
def test_private_runs_are_what_root_has_said_for_all(config, text, mode, says):
    config(text, mode)
    said = refused("--private")
    assert says in said and "/etc/brig/brig.json" in said, said
    assert service.run("root", "print(1)", "--private")["stdout"] == "1\n"


def test_an_mcp_server_says_why_as_well(config):
    config('{"%s": 1}' % MISTAKE)
    service.systemctl("stop", service.SOCKET)
    FAILURE.write_text(f"brigd: {MISTAKE}\x1b[2J\n")
    check = service.subprocess.run(["/usr/local/bin/brig-mcp", "--check"], capture_output=True, text=True, timeout=host.HANG, **service.as_user(service.MEMBER))
    assert check.returncode != 0 and "this host's service is down" in check.stderr and MISTAKE in check.stderr and "\x1b" not in check.stderr, check
