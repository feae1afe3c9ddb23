"""The result record: which keys, of which types, and whether the figures can be true."""
import datetime
import uuid

import pytest

KEYS = """run_id profile rootfs exit_reason exit_code signal limits_hit refused wall_ms cpu_ms memory_peak_bytes pids_peak io_read_bytes io_write_bytes
stdout_bytes stderr_bytes truncated started_at setup_ms warm isolation result result_repr error variables security_event
security_warnings files tool_calls session network stdout stderr""".split()
REASONS = "exited signaled timeout_wall timeout_cpu oom output_limit cancelled client_gone setup_failed denied".split()
LAYERS = {"user-ns", "own-ids", "mount-ns", "ro-rootfs", "pid-ns", "net-ns", "ipc-ns", "uts-ns", "memory-limit", "pids-limit",
          "no-caps", "no-new-privs", "seccomp", "wall-limit", "closed-fds"}
NUMBER, COUNT, TEXT = (int, float), int, str
TYPES = {
    "run_id": TEXT, "profile": TEXT, "rootfs": TEXT, "exit_reason": TEXT, "exit_code": COUNT, "signal": (str, type(None)), "limits_hit": list,
    "refused": list,
    "wall_ms": NUMBER, "cpu_ms": NUMBER, "memory_peak_bytes": COUNT, "pids_peak": (int, type(None)), "io_read_bytes": (int, type(None)),
    "io_write_bytes": (int, type(None)), "stdout_bytes": COUNT, "stderr_bytes": COUNT, "truncated": bool, "started_at": TEXT, "setup_ms": NUMBER,
    "warm": bool, "isolation": list, "stdout": TEXT, "stderr": TEXT,
}


@pytest.fixture(scope="module")
def run(jail, brig, tmp_path_factory):
    """Of a program that used 0.2 s of CPU, 30 MB, three processes and 12 bytes of output."""
    from support import brig as tool
    program = """
import os, time
x = bytearray(30 << 20)
for n in range(2):
    if os.fork() == 0: time.sleep(0.3); os._exit(0)
end = time.process_time() + 0.2 # a fork has used some before its program
while time.process_time() < end: pass
del end
[os.wait() for n in range(2)]
print("hello record"[:11])
"""
    began = datetime.datetime.now(datetime.timezone.utc)
    done = tool.run(program=program, folder=tmp_path_factory.mktemp("record"))
    assert done.record, str(done)
    done.began = began
    return done


@pytest.fixture(scope="module")
def record(run):
    return run.record


def test_it_has_exactly_the_keys_of_the_design(record):
    assert sorted(record) == sorted(KEYS)


@pytest.mark.parametrize("key", TYPES)
def test_type(record, key):
    assert isinstance(record[key], TYPES[key]), record
    assert not (TYPES[key] is COUNT and isinstance(record[key], bool)), record


def test_what_the_program_says_of_itself_is_there(record):
    said = [record[key] for key in ("result", "result_repr", "error", "variables", "security_event", "security_warnings", "files", "tool_calls", "session", "network")]
    assert said == [None, None, None, ["x", "n"], None, [], None, None, None, None], record


@pytest.mark.requirement("A44")
def test_the_run_id_is_a_uuid_and_the_start_is_when_it_began(run, record):
    assert str(uuid.UUID(record["run_id"])) == record["run_id"]
    began = datetime.datetime.strptime(record["started_at"], "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=datetime.timezone.utc)
    assert run.began <= began <= run.began + datetime.timedelta(seconds=run.seconds), record


@pytest.mark.requirement("A93")
def test_two_runs_have_two_ids(jail, run_brig):
    assert len({run_brig(program="pass").record["run_id"] for _ in range(3)}) == 3


@pytest.mark.requirement("A94", "A115")
def test_the_figures_are_those_of_the_program(run, record):
    assert record["exit_reason"] in REASONS and record["profile"] == "basic"
    assert 200 <= record["cpu_ms"] <= record["wall_ms"] + 200, record # of one CPU
    assert 300 <= record["wall_ms"], record
    assert 0 < record["setup_ms"] and record["setup_ms"] + record["wall_ms"] <= 1000 * run.seconds, str(run)
    assert 30 << 20 <= record["memory_peak_bytes"] < 100 << 20, record
    assert record["pids_peak"] is None or 3 <= record["pids_peak"] <= 6, record
    assert (record["stdout_bytes"], record["stderr_bytes"], record["stdout"], record["truncated"]) == (12, 0, "hello recor\n", False), record
    assert record["limits_hit"] == record["refused"] == [], record


@pytest.mark.requirement("A4", "A104")
def test_the_layers_in_force_are_named(record):
    assert LAYERS <= set(record["isolation"]), LAYERS - set(record["isolation"])
    assert not [layer for layer in record["isolation"] if layer.startswith("missing:")], record


HITS = [
    # option, value, limit's name in the record, program
    ("--pids", "8", "pids", 8, "import os, signal\nfor n in range(20):\n  try:\n    if os.fork() == 0: signal.pause()\n  except OSError: pass"),
    ("--tmp-size", "1M", "tmp_bytes", 1 << 20, "open('/tmp/x', 'wb', 0).write(b'x' * (2 << 20)); open('/tmp/y', 'wb', 0).write(b'x')"),
    ("--tmp-size", "1M", "tmp_bytes", 1 << 20, "open('/dev/shm/x', 'wb', 0).write(b'x' * (2 << 20)); open('/dev/shm/y', 'wb', 0).write(b'x')"),
    ("--workspace-size", "1M", "workspace_bytes", 1 << 20, "open('x', 'wb', 0).write(b'x' * (2 << 20)); open('y', 'wb', 0).write(b'x')"),
    ("--inodes", "32", "inodes", 32, "for n in range(64): open(f'/tmp/{n}', 'w')"),
]


@pytest.mark.parametrize("option, value, name, number, program", HITS, ids=[f"{row[2]} is in limits_hit when it refuses something" for row in HITS])
@pytest.mark.requirement("A5")
def test_limits_hit(jail, run_brig, option, value, name, number, program):
    run = run_brig(option, value, program=program)
    hits = {hit["name"]: hit for hit in run.record["limits_hit"]}
    assert name in hits and run.reason == "exited", str(run)
    assert sorted(hits[name]) == ["name", "peak", "times", "value"] and hits[name]["value"] == number, str(run)


ENDS = [("--memory", "32M", "x = bytearray(64 << 20)"), ("--timeout", "0.3", "import time; time.sleep(600)"),
        ("--cpu-time", "0.3", "while True: pass"), ("--output", "1K", "while True: print('x' * 100)")]


@pytest.mark.parametrize("option, value, program", ENDS, ids=[f"{row[0]} ends a run, so it is the reason and not in limits_hit" for row in ENDS])
@pytest.mark.requirement("A5")
def test_what_ends_a_run_is_its_reason(jail, run_brig, option, value, program):
    run = run_brig(option, value, program=program)
    assert f"{run.reason} ({option} {value}), wall" in run.stderr, str(run)
    assert run.reason not in ("exited", "signaled") and run.record["limits_hit"] == [], str(run)
