"""Nobody waits for somebody else: what one client sends, or one process does not read, costs the others no time."""
import array
import os
import signal
import socket
import struct
import threading
import time

import pytest

from rules import ANN, BOB, LONG, MANY, SLEEP
from support import client, host
from support import daemon as daemons

LARGEST = 8 << 20 # bytes of a program


def seconds_of(ask):
    began = time.monotonic()
    ask()
    return time.monotonic() - began


def computed(daemon, ask):
    """Seconds of CPU time that the server used meanwhile."""
    before = daemons.cpu_seconds(daemon.pid)
    ask()
    return daemons.cpu_seconds(daemon.pid) - before


def hello(daemon, uid=0):
    with daemon.connect_as(uid) as talk:
        talk.ask("hello")


def flood(talks, message, fd, over):
    """As fast as it can on all of them, and whatever the answer is."""
    beside = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
    for talk in talks:
        talk.sock.setblocking(False)
    while not over.is_set():
        for talk in talks:
            for work in (lambda: talk.sock.sendmsg([message], beside), lambda: talk.sock.recv(65536)):
                try:
                    work()
                except OSError:
                    pass


@pytest.mark.row("I5")
@pytest.mark.alone("uses up what the kernel lets one user have of descriptors on their way: no run of root's starts meanwhile")
@pytest.mark.parametrize("end, runs", [("\n", 1), pytest.param("\xff", 16, marks=pytest.mark.nightly)], ids=["above the quota", "no text"])
def test_large_programs_of_one_user_do_not_stop_the_server(start_daemon, end, runs):
    """They were read from their first byte to their last one before anybody asked whether they may run."""
    daemon = start_daemon({"access": [{"uid": ANN, "profiles": ["basic"], "runs": runs, **({"runs_per_minute": 1} if runs == 1 else {})},
                                      {"uid": BOB, "profiles": ["basic"]}]})
    os.chmod(daemon.path, 0o666)
    fd = client.sealed(b"#" * (LARGEST - 1) + end.encode("latin-1"))
    talks, over = [daemon.connect_as(ANN) for _ in range(100)], threading.Event()
    hog = threading.Thread(target=flood, args=(talks, b'{"op":"run"}', fd, over))
    hog.start()
    try:
        most = max(computed(daemon, lambda: hello(daemon, BOB)) for _ in range(5))
    finally:
        over.set()
        hog.join()
        for talk in talks:
            talk.close()
        os.close(fd)
    assert most < 2 * host.SLOWER, f"before another user was answered the server computed for {most:.1f} s" # of ten, once


TIMESTAMP = 35 # SO_TIMESTAMPNS


def said_at(talk):
    """When the server sent the next answer, as the kernel noted it."""
    _, [(_, _, stamp)], _, _ = talk.sock.recvmsg(65536, 64)
    seconds, nanoseconds = struct.unpack("qq", stamp)
    return seconds * 10**9 + nanoseconds


@pytest.mark.row("I5")
def test_users_are_heard_in_turn_however_many_connections_one_of_them_has(start_daemon):
    daemon = start_daemon({"access": [{"uid": ANN, "profiles": ["basic"]}, {"uid": BOB, "profiles": ["basic"]}]})
    os.chmod(daemon.path, 0o666)
    talks = [daemon.connect_as(ANN) for _ in range(40)]
    with daemon.connect_as(BOB) as talk:
        os.kill(daemon.pid, signal.SIGSTOP)
        for ann in talks:
            for _ in range(2):
                ann.sock.send(b'{"op":"run","x":"' + b"x" * 60000 + b'"}')
        talk.send({"op": "hello"}) # the last of all
        for one in (talk, *talks):
            one.sock.setsockopt(socket.SOL_SOCKET, TIMESTAMP, 1)
        os.kill(daemon.pid, signal.SIGCONT)
        bob = said_at(talk)
        heard = sum(said_at(ann) < bob for ann in talks for _ in range(2))
    for ann in talks:
        ann.close()
    assert heard < 20, f"{heard} of her messages were heard before the one of the other user" # she has forty that wait


@pytest.mark.nightly
@pytest.mark.row("I5")
def test_cancels_that_nobody_reads_do_not_stop_the_server(start_daemon):
    """A supervisor that is stopped, or busy: its socket has room for some hundreds."""
    daemon = start_daemon(MANY)
    with daemon.connect() as talk:
        run = talk.start(SLEEP, limits=LONG)
        assert run.line() == "up"
        stopped = daemon.roles()["supervisor"]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            for _ in range(1000):
                talk.ask("cancel", run=run.id)
            hello(daemon)
        finally:
            for pid in stopped:
                daemons.kill(pid, signal.SIGCONT)
        assert run.wait()["exit_reason"] == "cancelled"
        run.close()


@pytest.mark.nightly
def test_cells_of_one_client_leave_inotify_to_the_others(start_daemon):
    """The kernel counts the watchers of all cells for the one account that keeps them, which has 128."""
    daemon = start_daemon(MANY)
    hog = "import ctypes, time\nwhile ctypes.CDLL(None).inotify_init1(0) >= 0: pass\nprint('all', flush=True); time.sleep(600)"
    with daemon.connect() as talk:
        runs = [talk.start(hog, limits=LONG) for _ in range(8)]
        assert [run.line() for run in runs] == ["all"] * 8
        other = daemon.run("import ctypes; print(ctypes.CDLL(None).inotify_init1(0) >= 0)")
        for run in runs:
            run.close()
    assert other.stdout == "True\n", other


# --- a profile's supervisor that does not read ----------------------------------------------------------------------------

def said(daemon, program, **keys):
    """What it printed; None while the quota is used up."""
    try:
        return daemon.run(program, **keys).stdout
    except client.Refused as refused:
        assert refused.code == "busy", refused
        return None


def test_a_stopped_supervisor_stops_neither_monitor_nor_itself_for_long(start_daemon):
    """It is replaced when it does not take what it is told: runs of other profiles go on at once."""
    daemon = start_daemon({**MANY, "ready": 0})
    supervisor = daemon.supervisor_of()
    os.kill(supervisor, signal.SIGSTOP)
    talks = [daemon.connect() for _ in range(60)] # its socket holds half of them
    try:
        for talk in talks:
            talk.begin("exec", argv=["true"])
        assert host.poll(lambda: not os.path.exists(f"/proc/{supervisor}")), daemon.words()
        assert host.poll(lambda: said(daemon, "print('here')", profile="strict")) == "here\n" # the quota is free again a moment later
        assert said(daemon, "print('again')") == "again\n"
    finally:
        daemons.kill(supervisor, signal.SIGCONT)
        for talk in talks:
            talk.close()


# --- a monitor that does not answer -------------------------------------------------------------------------------------

@pytest.fixture
def stopped_monitor(start_daemon):
    daemon = start_daemon(MANY)
    daemon.settle()
    monitor = daemon.one("monitor")
    os.kill(monitor, signal.SIGSTOP)
    yield daemon
    daemons.kill(monitor, signal.SIGCONT)


@pytest.mark.nightly
@pytest.mark.row("I5")
def test_figures_that_the_monitor_does_not_tell_are_not_waited_for_again_and_again(stopped_monitor):
    def ask(times):
        talks = [stopped_monitor.connect() for _ in range(times)]
        for talk in talks:
            talk.send({"op": "stats"})
        hello(stopped_monitor)
        for talk in talks:
            assert talk.next().body["reply"] == "stats"
            talk.close()
    took = [seconds_of(lambda: ask(1))]
    assert host.poll(lambda: took.append(seconds_of(lambda: ask(1))) or took[-1] > 0.3), took # what was told a moment ago need not be asked
    assert seconds_of(lambda: ask(20)) < 10 * took[-1]


@pytest.mark.row("I5")
@pytest.mark.requirement("A106")
def test_a_monitor_with_too_much_to_do_is_busy_and_says_when_to_come_again(stopped_monitor):
    with stopped_monitor.connect() as talk:
        for _ in range(60):
            talk.begin("exec", argv=["true"], limits={"files": 99}) # no ready cell fits it
        error = talk.next().body["error"]
        assert error["code"] == "busy" and error["retry_after_ms"] > 0, error


# --- memory of others ----------------------------------------------------------------------------------------------------

def test_a_program_full_of_holes_costs_the_server_no_memory(daemon, talk):
    """Holes become pages when they are read, and belong to who reads them for as long as the client keeps the file."""
    import fcntl
    fds = []
    for _ in range(40):
        fd = os.memfd_create("code", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, LARGEST)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, client.SEALS)
        talk.send({"op": "run"}, [fd])
        assert talk.next().body["error"] == {"code": "bad_field", "message": "has a NUL byte; a Python program is text", "field": "code"}
        fds.append(fd)
    blocks = sum(os.fstat(fd).st_blocks for fd in fds)
    client.close_all(fds)
    assert blocks == 0


# --- descriptors that nobody takes ---------------------------------------------------------------------------------------

@pytest.mark.nightly
@pytest.mark.alone("needs to itself what the kernel lets one user have of descriptors on their way")
@pytest.mark.row("I4")
def test_streams_that_nobody_takes_are_named_as_the_reason(start_daemon):
    """They count for the server until the client reads or closes: above its limit the kernel takes none from it any more."""
    daemon = start_daemon(MANY, through=[*daemons.with_accounts(), "prlimit", "--nofile=450:450"])
    silent = [daemon.connect() for _ in range(8)]

    def refused():
        for talk in silent: # in turn: a service with so few descriptors has few cells, and refusals would fill the clients' sockets first
            talk.send({"op": "exec", "argv": ["true"], "stdin": True})
            with daemon.connect() as other:
                assert host.poll(lambda: other.ask("stats")["running"] == 0)
        with daemon.connect() as other:
            try:
                other.command("true", limits={"files": 99}) # no ready cell fits it: the server sends its streams to the monitor
            except client.Refused as e:
                return e if e.code == "busy" else None # or the server had no descriptor for what it sends to the monitor
            except (client.Closed, client.NotStarted): # its own streams were the first that did not get through; there were no descriptors for its cell
                return None
    try:
        why = host.poll(refused)
    finally:
        for talk in silent:
            talk.close()
    assert why and (why.code, why.error.get("retry_after_ms", 0) > 0) == ("busy", True) and "do not read" in why.error["message"], why.error
    assert host.poll(lambda: starts(daemon)), daemon.words()


def starts(daemon):
    with daemon.connect() as talk:
        talk.begin("exec", argv=["true"])
        said = talk.next()
        client.close_all(said.fds)
        return said.body.get("event") == "started"


def test_few_descriptors_are_few_cells_and_no_end_of_the_service(start_daemon):
    """The monitor must have room for all that comes with a run, or it cannot tell the server's word from garbage."""
    daemon = start_daemon({**MANY, "ready": 0}, through=[*daemons.with_accounts(), "prlimit", "--nofile=120:120"])
    talks = [daemon.connect() for _ in range(20)]
    for talk in talks:
        talk.begin("exec", argv=["sleep", "600"])
    said = [talk.next().body for talk in talks]
    refused = [body["record"]["error"]["message"] for body in said if body["event"] == "ended"]
    assert refused and all("cells are in use, and there are no descriptors for more" in text for text in refused), refused
    assert len(refused) < len(said), "no cell at all"
    fds = [os.open("/usr", os.O_PATH | os.O_DIRECTORY) for _ in range(8)]
    with daemon.connect() as talk:
        talk.begin("exec", fds, argv=["true"], ro=[f"r{n}" for n in range(8)])
        assert talk.next().body["record"]["error"]["message"] in refused
    client.close_all(fds)
    for talk in talks:
        talk.close()
    assert host.poll(lambda: starts(daemon)), daemon.words()
