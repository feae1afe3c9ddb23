"""System tests with programs under AddressSanitizer and UBSan: no process of a run, a session, a service, a proxy or a gateway is reported."""
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys

import pytest

from support import daemon, host

REPORTS = pathlib.Path("/tmp/brig-sanitizer-reports") # reports.c maps it
FRAME = re.compile(r"\((/[^()]+)\+(0x[0-9a-f]+)\)")
ROOM = 1 << 20
SLOWER = 3 # than other programs
PROGRAMS = ("brig", "brigd", "supervisor", "monitor", "proxy", "brig-mcp", "brig-mcp-http", "brig-mcp-remote", "brig-api")
AREAS = {
    "cli": ["tests/run/test_run_status.py", "tests/run/test_files.py", "tests/run/test_refused.py", "tests/run/test_live_output.py",
            "tests/run/test_callers_state.py", "tests/run/test_program_report.py", "tests/run/test_check.py"],
    "daemon": ["tests/service/test_start.py", "tests/service/test_talks.py", "tests/service/test_warm.py", "tests/service/test_leases.py",
               "tests/service/test_queue.py", "tests/service/test_reload.py", "tests/service/test_monitor.py", "tests/service/test_metrics.py"],
    "hostile": ["tests/service/test_hostile.py", "tests/service/test_descriptors.py", "tests/service/test_taken_over.py"],
    "session": ["tests/service/test_session.py", "tests/service/test_session_calls.py", "tests/service/test_session_quota.py", "tests/service/test_shell.py",
                "tests/service/test_sessions_cli.py", "tests/run/test_sessions.py", "tests/service/test_workdir.py"],
    "network": ["tests/network/test_proxy.py", "tests/network/test_tls.py", "tests/network/test_secrets.py", "tests/network/test_network_service.py",
                "tests/network/test_network_names.py", "tests/run/test_network.py"],
    "api": ["tests/api/test_api_runs.py", "tests/api/test_api_http.py", "tests/api/test_api_attack.py"],
    "mcp": ["tests/mcp/test_mcp_stdio_runs.py", "tests/mcp/test_mcp_hostile.py", "tests/mcp/test_mcp_sessions.py", "tests/mcp/test_mcp_cancel.py",
            "tests/mcp/test_mcp_http.py", "tests/mcp/test_broker_calls.py", "tests/mcp/test_broker_hostile.py", "tests/mcp/test_broker_http.py"],
}
# What these programs are too slow or too large for.
EXCEPT = [
    "tests/service/test_reload.py::test_many_readings_cost_no_run_and_leave_nothing", # 200 readings
    "tests/run/test_refused.py::test_a_plain_user_is_told_as_well", # without a control group RLIMIT_DATA limits memory: ASan's shadow exceeds it
    "tests/run/test_callers_state.py::test_no_variable_of_the_caller_loads_code_into_what_brig_executes", # brig is static, but not there
]


@pytest.fixture(scope="module")
def build(asan_build):
    store = asan_build / "store"
    if not store.is_symlink():
        store.symlink_to(host.build_dir() / "store")
    return asan_build


@pytest.fixture
def reports():
    """Reads what was reported since: the file is sparse, and each worker has its own /tmp."""
    REPORTS.unlink(missing_ok=True)
    REPORTS.touch()
    os.truncate(REPORTS, ROOM)
    REPORTS.chmod(0o666)
    yield read_reports
    REPORTS.unlink()


def read_reports():
    data = REPORTS.read_bytes()
    used, = struct.unpack_from("=Q", data)
    return FRAME.sub(with_line, data[8:8 + used].rstrip(b"\0").decode(errors="replace"))


def with_line(frame):
    """The processes name no source lines: most cannot read their own file any more."""
    where = subprocess.run(["addr2line", "-fe", *frame.groups()], capture_output=True, text=True).stdout.split()
    return f"{frame[0]} {' '.join(where)}"


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.nightly
def test_a_program_is_sanitized(build, name):
    symbols = subprocess.run(["nm", build / "bin" / name], capture_output=True, text=True, check=True).stdout
    assert re.search(r" __asan_init\b", symbols) and re.search(r" T __ubsan_on_report\b", symbols)


@pytest.mark.nightly
@pytest.mark.parametrize("wrong, said", [("heap", "heap-buffer-overflow"), ("sum", "signed-integer-overflow")])
def test_the_error_of_a_process_without_descriptors_is_seen(build, reports, wrong, said):
    """Else what follows would show nothing."""
    assert subprocess.run([build / "tests" / "goes_wrong", wrong]).returncode != 0
    assert said in reports()


@pytest.mark.nightly
def test_every_process_of_a_service_can_report(build, reports, monkeypatch):
    monkeypatch.setenv("BRIG_BUILD", str(build))
    with daemon.Daemon() as service:
        service.run("pass")
        service.settle()
        seen = {(host.read(f"/proc/{pid}/comm").strip(), exe(pid).startswith(f"{build}/"), str(REPORTS) in host.read(f"/proc/{pid}/maps"))
                for pid in [service.pid, *service.below()]}
    assert {name for name, is_ours, can_report in seen if is_ours and can_report} >= {"brigd", "monitor", "brig-reader", "brig-supervisor", "brig-forker"}
    assert not [row for row in seen if row[1] and not row[2]], seen


def exe(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError: # it has ended
        return ""


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["server", "monitor", "supervisor", "forker"]) # reader and sweeper block all signals
def test_the_error_of_a_process_that_has_given_up_its_rights_is_seen(build, reports, monkeypatch, kind):
    """AddressSanitizer takes the signal for an error in memory."""
    monkeypatch.setenv("BRIG_BUILD", str(build))
    with daemon.Daemon() as service:
        service.run("pass")
        os.kill(service.one(kind), signal.SIGSEGV)
        assert host.poll(lambda: "AddressSanitizer: SEGV" in reports()), reports()


@pytest.mark.nightly(seconds=1800)
@pytest.mark.parametrize("area", AREAS)
def test_no_error_is_found_in(build, reports, area):
    env = {**os.environ, "BRIG_BUILD": str(build), "BRIG_TEST_SLOWER": str(SLOWER * host.SLOWER)}
    env.pop("BRIG_TEST_FAILED", None) # of the session that runs this
    out = [word for name in EXCEPT for word in ("--deselect", name)]
    log = build / f"whole-{area}.log"
    with log.open("w") as text:
        status = subprocess.run([sys.executable, "-m", "pytest", "-v", "-rfE", "-p", "no:cacheprovider", *out, *AREAS[area]], cwd=host.REPO, stdout=text,
                                stderr=subprocess.STDOUT, env=env).returncode
    found = reports()
    assert not found, found
    assert status == 0, f"{log}:\n{log.read_text(errors='replace')[-8000:]}"
