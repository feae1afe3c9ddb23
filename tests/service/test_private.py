"""A server of one's own: it lives as long as its one connection, with the caller's rights, and takes its runs along."""
import os
import random
import socket
import subprocess
import time

import pytest

import hostile
import left
from rules import LONG, SLEEP
from support import brig, client, host
from support import daemon as daemons


@pytest.fixture
def own(jail):
    with daemons.Private() as made:
        yield made


def sleeping(talk, token):
    run = talk.start(SLEEP, args=[token], limits=LONG)
    assert run.line() == "up"
    return run


def test_it_ends_when_its_connection_closes_and_its_runs_with_it(own, token):
    before = left.Snapshot()
    runs = [sleeping(own.client, token) for _ in range(3)]
    own.client.close()
    assert own.ends() == 0
    assert not left.wrong(before, token), left.wrong(before, token)
    for run in runs:
        run.close()


def test_it_ends_when_its_client_is_killed(jail, token):
    before = left.Snapshot()
    script = ("import sys, signal; sys.path.insert(0, sys.argv[1])\nfrom support import daemon\nown = daemon.Private()\n"
              f"run = own.client.start({SLEEP!r}, args=[sys.argv[2]], limits={LONG})\n"
              "run.line(); print(own.pid, flush=True); signal.pause()")
    child = subprocess.Popen([host.PYTHON, "-c", script, str(host.REPO / "tests"), token], stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    server = int(child.stdout.readline())
    child.kill()
    child.communicate()
    assert host.poll(lambda: not os.path.exists(f"/proc/{server}")), "the server outlives its client"
    assert host.poll(lambda: not [pid for pid, uid in host.with_token(token)]), host.with_token(token)
    assert not left.wrong(before), left.wrong(before)


KILLED = {
    # who is killed: how the run may end for a client that is still there
    "launcher": {"setup_failed", "cancelled", "signaled"}, "init": {"signaled", "exited", "cancelled", "setup_failed"}, "server": None,
}


@pytest.mark.parametrize("who", KILLED)
def test_whoever_is_killed_leaves_nothing(own, token, who):
    before = left.Snapshot()
    run = sleeping(own.client, token)
    found = [pid for pid in [own.pid, *daemons.Daemon.below(own)] if daemons.kind_of(pid) == who]
    assert found, [daemons.kind_of(pid) for pid in daemons.Daemon.below(own)]
    daemons.kill(found[0])
    if KILLED[who]:
        assert run.wait()["exit_reason"] in KILLED[who], run.events
        assert own.client.run("print('next')").stdout == "next\n"
    else:
        with pytest.raises(client.Closed):
            run.wait()
    assert not left.wrong(before, token), left.wrong(before, token)
    run.close()


def test_fifty_servers_killed_at_random_moments_leave_nothing(jail, token):
    before, dice = left.Snapshot(), random.Random(1)
    for _ in range(50):
        own = daemons.Private()
        code = client.sealed(SLEEP)
        own.client.begin("run", [code], args=[token], limits=LONG)
        os.close(code)
        time.sleep(dice.uniform(0, 0.030)) # the random moment
        daemons.kill(own.pid)
        own.process.wait()
        own.client.close()
    assert host.poll(lambda: not host.with_token(token)), host.with_token(token)
    with daemons.Private() as own: # the next one sweeps
        assert own.client.run("print('next')").stdout == "next\n"
    assert not left.wrong(before, token), left.wrong(before, token)


def test_two_servers_of_ones_own_share_nothing(own, token):
    with daemons.Private() as other:
        run = sleeping(own.client, token)
        assert other.client.ask("list")["runs"] == []
        with pytest.raises(client.Refused, match="not_found"):
            other.client.ask("cancel", run=run.id, reason="cancelled")
        run.close()


BAD = {
    # what is wrong: the words after the program's name, the status
    "nothing": ([], 1), "no descriptor": (["--private", "--fd"], 2), "a word": (["--private", "--fd", "x"], 1), "a negative one": (["--private", "--fd", "-1"], 1),
    "one that is closed": (["--private", "--fd", "900"], 1), "a huge one": (["--private", "--fd", "99999999999999999999"], 1), "one and a bit": (["--private", "--fd", "3x"], 1),
    "both ways": (["--private", "--foreground"], 2), "an unknown word": (["--public"], 2), "a socket without a path": (["--foreground", "--socket"], 2),
}


@pytest.mark.parametrize("what", BAD)
def test_words_that_make_no_sense_are_refused_with_a_sentence(brig, what):
    words, status = BAD[what]
    done = subprocess.run([daemons.binary(), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=host.HANG)
    assert done.returncode == status and done.stderr.strip() and not done.stdout, done


@pytest.mark.parametrize("kind", ["pipe", "file", "directory", "device", "opath"])
def test_what_is_no_such_socket_is_refused(jail, kind):
    fd = hostile.KINDS[kind]()
    try:
        argv = [daemons.binary(), "--private", "--fd", str(fd)]
        done = subprocess.run(argv, pass_fds=[fd], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=host.HANG, env=brig.environment())
    finally:
        os.close(fd)
    assert done.returncode == 1 and 1 <= len(done.stderr.splitlines()) <= 2, done


def test_nothing_of_the_callers_stays_open_in_it(jail, tmp_path):
    """Only the connection, and what a server opens itself; a run of it sees less still."""
    held = open(tmp_path / "secret", "w")
    os.set_inheritable(held.fileno(), True)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with held, theirs:
        process = subprocess.Popen([daemons.binary(), "--private", "--fd", str(theirs.fileno())], pass_fds=[theirs.fileno(), held.fileno()],
                                   stdin=subprocess.DEVNULL, env=brig.environment())
    with client.Client(ours) as talk:
        assert talk.ask("hello")["version"] == 1
        links = [os.readlink(f"/proc/{process.pid}/fd/{fd}") for fd in daemons.listed(f"/proc/{process.pid}/fd")]
        assert not [link for link in links if "secret" in link], links
        assert "secret" not in talk.command("ls", "-l", "/proc/self/fd").stdout
    assert process.wait(host.HANG) == 0
