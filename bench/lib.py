"""Interleaved measuring: every round runs each candidate once, so that a drifting machine drifts for all of them."""
import argparse
import json
import os
import shlex
import statistics
import sys
import time


LITTLE = 0.1 # of the machine: less disturbs nobody


def idle_and_all():
    ticks = [int(word) for word in open("/proc/stat", encoding="ascii").readline().split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def look_whether_busy(seconds=0.5):
    """Which part of the machine others are using just now, and says so; 0 when it is little. A load average would tell of the last minutes."""
    before = idle_and_all()
    time.sleep(seconds)
    idle, whole = (now - then for now, then in zip(idle_and_all(), before))
    busy = 1 - idle / whole
    if busy < LITTLE:
        return 0
    print(f"This machine is busy ({busy:.0%} of its CPU time): the figures below are not worth quoting.", flush=True)
    return busy


class Candidate:
    """A command line, told in full, with the layers it lacks. prepare(i) may change argv for round i (unique names)."""

    def __init__(self, name, argv, lacks="", prepare=None, files=(), env=None):
        self.name, self.argv, self.lacks = name, [str(word) for word in argv], lacks
        self.prepare = prepare or (lambda argv, i: argv)
        self.files = list(files)  # (descriptor, path) opened for reading in the child
        self.env = env if env is not None else {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
        self.ms = []

    def shown(self):
        return shlex.join(self.argv) + "".join(f" {fd}<{path}" for fd, path in self.files)


class Asked:
    """Like a Candidate, but what is measured is a function here: from the request to its last answer."""

    def __init__(self, name, call, shown):
        self.name, self.call, self.words, self.lacks, self.argv, self.ms = name, call, shown, "", [shown], []

    def shown(self):
        return self.words


def once(candidate, i, output="/dev/null"):
    """Milliseconds from posix_spawn to reaped, and the exit status."""
    argv = candidate.prepare(candidate.argv, i)
    actions = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
               (os.POSIX_SPAWN_OPEN, 1, output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
               (os.POSIX_SPAWN_DUP2, 1, 2)]
    actions += [(os.POSIX_SPAWN_OPEN, fd, str(path), os.O_RDONLY, 0) for fd, path in candidate.files]
    start = time.perf_counter_ns()
    pid = os.posix_spawnp(argv[0], argv, candidate.env, file_actions=actions)
    _, status = os.waitpid(pid, 0)
    return (time.perf_counter_ns() - start) / 1e6, os.waitstatus_to_exitcode(status)


def works(candidate, expect, scratch):
    """A peer that fails is fast; it is told, and left out."""
    out = scratch / "output"
    _, status = once(candidate, 0, str(out))
    said = out.read_text(errors="replace")
    if status == 0 and said == expect:
        return True
    print(f"left out: {candidate.name}: status {status}, said: {said.strip()[:300] or '(nothing)'}\n    {candidate.shown()}")
    return False


def interleave(candidates, rounds, warmup=5):
    for i in range(-warmup, rounds):
        turn = i % len(candidates)
        for candidate in candidates[turn:] + candidates[:turn]:  # nobody is always behind the same one
            ms, status = once(candidate, i + warmup + 1)
            if status != 0:
                sys.exit(f"{candidate.name}: status {status} in round {i}: {candidate.shown()}")
            if i >= 0:
                candidate.ms.append(ms)


def count(text):
    """Of rounds, as an option's type."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]


def median(candidate):
    return statistics.median(candidate.ms)


def table(candidates, bases):
    """Name, median, p95, and the ratio of its median to that of each base."""
    width = max(len(base) for base in bases) + 4
    head = "".join(f"{'/ ' + base:>{width}}" for base in bases)
    print(f"{'':<22} {'median ms':>10} {'p95 ms':>8}{head}")
    by_name = {c.name: c for c in candidates}
    for c in candidates:
        ratios = "".join(f"{median(c) / median(by_name[b]):>{width}.2f}" if b in by_name else f"{'-':>{width}}" for b in bases)
        print(f"{c.name:<22} {median(c):>10.2f} {percentile(c.ms, 0.95):>8.2f}{ratios}")


def folded(text, indent, width=108):
    """Long command lines, broken at blanks."""
    lines, line = [], ""
    for word in text.split(" "):
        if line and len(line) + len(word) + 1 > width - indent:
            lines.append(line)
            line = ""
        line += (" " if line else "") + word
    return ("\n" + " " * indent).join([*lines, line])


def tell(candidates):
    for c in candidates:
        print(f"{c.name}:\n    {folded(c.shown(), 4)}")
        if c.lacks:
            print(f"    lacks: {folded(c.lacks, 11)}")


def goal(words, ratio, most):
    print(f"  {words:<46} {ratio:5.2f}   goal: at most {most:.2f}   {'reached' if ratio <= most else 'MISSED'}")


def save(path, groups):
    with open(path, "w") as f:
        json.dump({title: [{"name": c.name, "command": c.argv, "lacks": c.lacks, "ms": c.ms} for c in candidates]
                   for title, candidates in groups.items()}, f, indent=1)
