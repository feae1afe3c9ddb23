"""The audit and a real journald: systemd's own, started alone, in a mount namespace where nothing else of the host's /run is."""
import json
import pathlib
import subprocess

import pytest

from support import host

JOURNALD = pathlib.Path("/lib/systemd/systemd-journald")
SCRIPT = """
set -e
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/journal /run/systemd/journald.conf.d /run/log/journal
printf '[Journal]\\nStorage=volatile\\nReadKMsg=no\\nAudit=\\n' > /run/systemd/journald.conf.d/alone.conf # the host's kernel is none of its business
echo 0123456789abcdef0123456789abcdef > /run/id
mount --bind /run/id /etc/machine-id
exec 3>&1 1>&2
"$1" & journald=$!
trap 'kill $journald; wait $journald' EXIT
until [ -S /run/systemd/journal/socket ]; do kill -0 $journald; done
"$2" >&2
until journalctl -q BRIG_OP=exec | grep -q .; do kill -0 $journald; done
journalctl -q -o json SYSLOG_IDENTIFIER=brigd BRIG_PEER_UID=1000 + BRIG_PEER_UID=1001 + BRIG_X=1 + MESSAGE=forged >&3
"""


@pytest.fixture(scope="module")
def messages(needs_root):
    if not JOURNALD.exists():
        pytest.skip("needs systemd-journald")
    if not pathlib.Path("/etc/machine-id").exists():
        pytest.skip("needs /etc/machine-id, which another is mounted over")
    once = host.build_dir() / "tests" / "audit_once"
    done = subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c", SCRIPT, "sh", JOURNALD, once],
                          capture_output=True, text=True, timeout=host.HANG)
    assert done.returncode == 0, done
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_it_takes_each_entry_once(messages):
    assert [message["BRIG_OP"] for message in messages] == ["run", "exec"]


@pytest.mark.requirement("A95", "A105")
def test_a_refusal_is_found_by_its_fields(messages):
    refusal = messages[0]
    assert refusal["BRIG_EXIT_REASON"] == "denied" and refusal["BRIG_ERROR"] == "unknown_profile" and refusal["BRIG_PEER_UID"] == "1000", refusal
    assert refusal["SYSLOG_IDENTIFIER"] == "brigd" and refusal["PRIORITY"] == "5" and refusal["_TRANSPORT"] == "journal", refusal


def test_a_name_with_a_newline_in_it_forges_no_field(messages):
    refusal = messages[0]
    assert refusal["BRIG_PROFILE"] == "none\nMESSAGE=forged\n"
    assert bytes(refusal["BRIG_PEER_COMM"]) == b"\x1b[2Jx\nBRIG_X=1", "journalctl gives as numbers what it would not print"
    assert "BRIG_X" not in refusal
    assert refusal["MESSAGE"].endswith(r' profile "none\nMESSAGE=forged\n" uid 1000 comm "\u001B[2Jx\nBRIG_X=1"'), refusal


@pytest.mark.requirement("A100", "A105")
def test_a_run_has_its_id_and_its_limits(messages):
    run = messages[1]
    assert run["BRIG_RUN_ID"] == "7d444840-9dc0-11d1-b245-5ffdce74fad2" and json.loads(run["BRIG_LIMITS_GRANTED"]) == {"cpus": 0.5}, run
    assert run["PRIORITY"] == "6" and "BRIG_ERROR" not in run and "BRIG_LIMITS_ASKED" not in run, run
