"""Each call between an order and a warm program is made to fail, in the zygote and in its fork: no program runs then, and it is told why."""
import collections
import errno
import os
import re
import sys
import time

import pytest

import left
from rules import MANY
from support import client, host, warm_load
from support import daemon as daemons
from support.traced import Traced

sys.path.append(str(host.REPO / "tests" / "attack"))
import faults # which errnos a call can really answer

ROLES = ("zygote", "fork")
CANNOT = {
    **faults.CANNOT, "restart_syscall": "strace's own doing", "wait4": "with WNOHANG, and a child that has ended, it knows no failure",
    "close": "the kernel closes, whatever it answers; strace would keep it from that",
}
CANNOT_OF_FORK = {"clock_gettime": "what the set-up used then counts as the program's"}

HARMLESS = [
    # role, call, its words, errnos: why the program may run all the same
    (".*", "read|pread64|write|recvmsg|sendmsg|poll|epoll_wait", "", "EINTR", "is made again"),
    ("fork", "openat|read", "/proc/.*/?stat", "", "what ps shows as its arguments are the zygote's then"),
    ("fork", "prctl", "PR_SET_MM|PR_SET_NAME", "", "what ps shows"),
    ("fork", "seccomp", "NEW_LISTENER", "EBUSY EINVAL", "the filter is on without a listener, or with one of an older kind"),
    ("fork", "ioprio_set", "", "ENOSYS", "a kernel without it has nothing to reset"),
    ("zygote", ".*", "", "", "the zygote ends, and another one is started"),
]

Call = collections.namedtuple("Call", "role name nth words")


def lines_of(traced):
    return faults.whole(traced.log.read_text(errors="replace").splitlines())


def calls_of(lines, zygote):
    """Up to the word that the filter is on: what comes later is the interpreter's and the program's."""
    counts, installed, over = collections.Counter(), False, False
    for line in lines:
        found = re.match(r"(\d+) +(\w+)\((.*)", line)
        if not found:
            continue
        pid, name, words = found.groups()
        role = "zygote" if int(pid) == zygote else "fork"
        if name in CANNOT or role == "fork" and (over or name in CANNOT_OF_FORK):
            continue
        counts[role, name] += 1
        yield Call(role, name, counts[role, name], words)
        if role == "fork":
            installed |= name == "seccomp" or name == "prctl" and "PR_SET_SECCOMP" in words
            over |= installed and name == "sendmsg"


@pytest.fixture(scope="module")
def folder(built):
    scratch, profiles = warm_load.only_basic("demand")
    yield profiles
    scratch.cleanup()


@pytest.fixture(scope="module")
def kept(folder, no_stock):
    if host.lacks("tool:strace"):
        pytest.skip(host.lacks("tool:strace"))
    there = left.Snapshot()
    with daemons.Daemon(MANY, env={"BRIG_PRESETS": str(folder)}) as one:
        one.settle()
        assert warm_load.is_warm_again(one), one.words()
        yield one
    assert not left.wrong(there), left.wrong(there)


def zygote_of(daemon):
    assert host.poll(lambda: len(daemon.of_kind("zygote")) == 1), daemon.tree()
    return daemon.of_kind("zygote")[0]


@pytest.fixture(scope="module")
def calls(kept, tmp_path_factory):
    log, zygote = tmp_path_factory.mktemp("faults") / "trace", zygote_of(kept)
    with kept.connect() as talk, Traced(zygote, log) as traced:
        assert talk.run("print('ran')").record["warm"]
    found = list(calls_of(lines_of(traced), zygote))
    assert {call.role for call in found} == set(ROLES) and any(call.name == "setns" for call in found)
    return found


class Attempt:
    """One run in which one call fails; counted for each process by itself, so one of the same name may fail in the other role, too."""

    def __init__(self, daemon, call, error, log):
        self.call, self.error, self.zygote, said = call, error, zygote_of(daemon), len(daemon.words())
        inject = f"inject={call.name}:error={error}:when={call.nth}"
        with Traced(self.zygote, log, "-e", f"trace={call.name}", "-e", inject) as traced, daemon.connect() as talk:
            try:
                run = talk.start("print('ran')").finish(10)
                self.record, self.stdout, self.told = run.record, run.stdout, str(run.events)
            except client.NotStarted as e:
                self.record, self.stdout, self.told = e.record, "", str(e)
            except TimeoutError as e:
                self.record, self.stdout, self.told = {"exit_reason": "no answer", "warm": None}, "", str(e)
        self.failed = {"zygote" if line.startswith(f"{self.zygote} ") else "fork" for line in lines_of(traced) if "(INJECTED" in line}
        self.said = daemon.words()[said:]

    def __str__(self):
        c, told = self.call, re.findall(r"[\"']message[\"']: [\"'][^\"']*", self.told) or self.told[:200]
        return (f"{c.role}: {c.name} {c.nth} ({c.words[:80]}) = {errno.errorcode[self.error]}: failed in {self.failed}, {self.record['exit_reason']}, "
                f"warm {self.record['warm']}, stdout {self.stdout!r}, told {told}, said {self.said[-300:]!r}")

    def why_harmless(self):
        c = self.call
        return any(re.fullmatch(role, where) and re.fullmatch(name, c.name) and re.search(words, c.words) and
                   (not errnos or errno.errorcode[self.error] in errnos.split())
                   for role, name, words, errnos, _ in HARMLESS for where in self.failed)

    def complaint(self):
        """None, or what is wrong."""
        reason, ran = self.record["exit_reason"], self.stdout == "ran\n"
        if not self.failed and self.call.role == "zygote" and ran:
            return None # it was about another cell, which was built at another time
        if not self.failed:
            return "not reached"
        if reason == "exited":
            if not ran or self.record["exit_code"] != 0:
                return "neither run nor refused"
            if not self.record["warm"]:
                return None if "started cold" in self.said else "cold without a word"
            return None if self.why_harmless() else "the program ran"
        if reason == "cancelled" and "zygote" in self.failed: # it may have run: who knew how it ended is gone
            return None if "zygote" in self.told else "an end without a reason"
        if ran or self.stdout:
            return "the program ran"
        if reason != "setup_failed":
            return "no answer" if reason == "no answer" else "another reason"
        named = re.search(r"set-up step [a-z-]+: |the zygote cannot fork into the cell: ", self.told) and os.strerror(self.error) in self.told
        return None if named else "step and errno are not told"


def check(daemon, attempts, log, seconds):
    bad, seen, end = [], set(), time.monotonic() + seconds
    for call, error in attempts:
        if time.monotonic() > end and (call.role, call.name) in seen:
            continue
        seen.add((call.role, call.name))
        for _ in range(3): # a signal of the run before may have come between
            attempt = Attempt(daemon, call, error, log)
            if attempt.complaint() != "not reached":
                break
        if attempt.complaint():
            bad.append(f"{attempt.complaint()}: {attempt}")
            daemons.kill(attempt.zygote)
        if not warm_load.is_warm_again(daemon):
            bad.append(f"no warm run afterwards: {attempt}")
    assert not bad, f"{len(bad)} of {len(attempts)}:\n" + "\n".join(bad[:20])


def one_each(calls, role):
    """Every call once: the errnos of its class in turn. Each name first."""
    mine = sorted((call for call in calls if call.role == role), key=lambda call: call.nth > 1)
    return [(call, faults.ERRNOS[call.name][n % len(faults.ERRNOS[call.name])]) for n, call in enumerate(mine)]


def test_every_call_of_a_fork_has_a_class_of_errors(calls):
    assert {call.name for call in calls} - set(faults.ERRNOS) == set()


@pytest.mark.parametrize("role", ROLES)
def test_a_call_that_fails_starts_no_warm_program_or_is_told(kept, calls, tmp_path, role):
    check(kept, one_each(calls, role), tmp_path / "log", 20)


@pytest.mark.long
@pytest.mark.parametrize("role", ROLES)
def test_every_error_of_every_call_of_a_fork(kept, calls, tmp_path, role):
    check(kept, [(call, error) for call in calls if call.role == role for error in faults.ERRNOS[call.name]], tmp_path / "log", 3000)


def test_control_nothing_is_told_when_nothing_fails(kept, calls, tmp_path):
    call = next(call for call in calls if call.role == "fork" and call.name == "setns")
    attempt = Attempt(kept, call._replace(nth=50), errno.EPERM, tmp_path / "log")
    assert attempt.record["warm"] and attempt.stdout == "ran\n" and not attempt.failed, str(attempt)
