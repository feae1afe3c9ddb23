"""kill -9 of everybody who takes part in a run, at random moments: afterwards nothing is left and the next run works.

BRIG_DAEMON_KILLS changes the number, BRIG_DAEMON_SEED the moments.
"""
import collections
import os
import random
import signal
import time

import pytest

import left
from rules import LONG, MANY, SLEEP
from support import client, host, tiers, warm
from support import daemon as daemons

SEED = int(os.environ.get("BRIG_DAEMON_SEED", "1"))
WHO = ("client", "server", "monitor", "supervisor", "zygote", "init", "program") # a profile that is never warm has no zygote
PROGRAMS = ["import time; time.sleep(600)", "print('hello')", "import os, time\nfor n in range(5):\n  if os.fork() == 0: os.setsid()\ntime.sleep(600)"]
SAID = {"signaled", "cancelled", "client_gone", "exited", "setup_failed"} # how a run may end whose helper was killed; and not as a limit's


def client_process(daemon, program, token):
    """A child that asks for a run and waits for its death; it needs no Python of its own to be started."""
    pid = os.fork()
    if pid == 0:
        try:
            talk = daemon.connect()
            fd = client.sealed(program)
            talk.begin("run", [fd], args=[token], limits=LONG)
            while True:
                signal.pause()
        finally:
            os._exit(1)
    return pid


def victims(daemon, who, started, token):
    """There is one server and one monitor, the oldest: what the monitor has just forked has its name for a moment."""
    if who == "client":
        return [started]
    if who == "program":
        return [pid for pid, _ in host.with_token(token)]
    return daemon.of_kind(who)[:1 if who in ("server", "monitor") else None]


def recover(daemon):
    """Starts it again when it has ended; else waits until it has healed. None, or what is wrong."""
    end, why = time.monotonic() + host.HANG, None
    while time.monotonic() < end:
        if not daemon.alive():
            daemon.process.wait()
            daemon.start()
        try:
            ended = daemon.run("print('next')")
            if ended.reason in ("cancelled", "setup_failed", "signaled"): # who was killed belonged to a cell that stood ready
                continue
            return None if ended.stdout == "next\n" and not ended.left else f"the next run: {ended}"
        except (client.Refused, client.NotStarted, client.Closed, OSError) as e: # the dead may still have been thought alive
            why = e
            if isinstance(e, client.Refused) and e.code not in ("unavailable", "busy"):
                break
        time.sleep(0.01)
    return f"the next run: {why!r}\n{daemon.words()}"


def one_kill(daemon, who, dice, token):
    """(whom it hit, what is wrong)"""
    before = left.Snapshot()
    started = client_process(daemon, dice.choice(PROGRAMS), token)
    try:
        time.sleep(dice.uniform(0, 0.040)) # the random moment
        found = victims(daemon, who, started, token)
        hit = bool(found) and daemons.kill(dice.choice(found))
        if who == "client":
            wrong = left.wrong(before, token) # by the very same daemon
            return hit, [wrong] if wrong else []
    finally:
        daemons.kill(started)
        os.waitpid(started, 0)
    if hit and who in ("server", "monitor"): # a server that has not heard of it yet would still give a run to a cell that stands ready
        host.poll(lambda: not daemon.alive())
    wrong = [recover(daemon), left.wrong(before, token)]
    return hit, [text for text in wrong if text]


def kill_table(daemon, who_is_there, kills, seed):
    """Each of them equally often, in an order of chance. A kill that came too early or too late to hit is made again, at another moment."""
    dice = random.Random(seed)
    order = [who_is_there[n % len(who_is_there)] for n in range(kills)]
    dice.shuffle(order)
    seen, bad, missed, end = collections.Counter(), [], 0, time.monotonic() + kills * host.HANG
    while order and len(bad) <= 5 and time.monotonic() < end:
        n = sum(seen.values()) + missed
        hit, wrong = one_kill(daemon, order[-1], random.Random(seed * 100000 + n), f"token-{seed}-{n}")
        bad += [f"kill {n}, {order[-1]}: {text}" for text in wrong]
        if hit:
            seen[order.pop()] += 1
        missed += not hit
    assert bad or not order, f"seed {seed}: after {missed} kills that hit nothing, left are {order}"
    return bad


def check(start_daemon, warm_mode, kills, seed):
    scratch, profiles = warm.scratch_profiles("basic", warm=warm_mode)
    with scratch:
        before = left.Snapshot()
        daemon = start_daemon(MANY, env={"BRIG_PRESETS": str(profiles)})
        assert daemon.run("print('first')").stdout == "first\n"
        bad = kill_table(daemon, [who for who in WHO if who != "zygote" or warm_mode != "never"], kills, seed)
        status = daemon.stop()
        assert not bad, f"seed {seed}: " + "\n".join(bad)
        assert status == 0, f"seed {seed}: the last daemon ended with {status}"
        assert not left.wrong(before), left.wrong(before)


@pytest.mark.parametrize("kills", tiers.amounts(7, 200, "BRIG_DAEMON_KILLS"))
@pytest.mark.parametrize("warm_mode", tiers.few(["never", "ready"], "ready"))
def test_kills_leave_nothing(start_daemon, warm_mode, kills):
    check(start_daemon, warm_mode, kills, SEED)


@pytest.mark.long
@pytest.mark.parametrize("warm_mode", ["never", "demand", "ready"])
def test_two_thousand_kills_leave_nothing(start_daemon, warm_mode):
    check(start_daemon, warm_mode, 2000, SEED + 1)


# --- each of them once, with a run that surely is there -----------------------------------------------------------------

@pytest.mark.parametrize("helper", tiers.few(["monitor", "supervisor", "init"], "monitor"))
def test_a_client_hears_the_end_when_a_helper_is_killed(start_daemon, token, helper):
    daemon = start_daemon(MANY)
    with daemon.connect() as talk:
        run = talk.start(SLEEP, args=[token], limits=LONG)
        assert run.line() == "up"
        killed = daemon.of_kind(helper)
        assert killed, daemon.tree()
        for pid in killed:
            daemons.kill(pid)
        try:
            record = run.wait()
            assert record["exit_reason"] in SAID, record
        except client.Closed: # the server went with its monitor
            assert helper == "monitor"
        run.close()
    assert host.poll(lambda: not host.with_token(token)), host.with_token(token)
    assert recover(daemon) is None
