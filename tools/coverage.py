#!/usr/bin/python3
"""coverage - runs tests with the build in build/coverage and tells, by area, which lines and branches they executed: ./dev coverage"""
import collections
import datetime
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "coverage"
COUNTERS, PROFILE, TABLE, PAGES = BUILD / "counters", BUILD / "profile", BUILD / "table.txt", BUILD / "html"
AREAS = ("common", "common/json", "common/protocol", "common/io", "common/client", "jail/spec", "jail/privilege", "jail/cgroup", "jail/seccomp", "jail/profile",
         "jail/messages", "jail/child", "jail/zygote", "jail/cell", "jail/runner", "jail/supervisor", "jail/launcher", "jail/monitor", "jail/proxy", "jail/audit", "jail/config", "jail/plan", "jail/server", "jail/daemon", "jail/doctor", "jail/cli", "jail/metrics", "jail/zygote/module",
         "rootfs-builder", "mcp", "mcp/rpc", "mcp/broker", "mcp/remote", "mcp/http", "api")
UNCOUNTED = {"jail/init": "PID 1 of a cell, which has no C library", "jail/cli/early": "what brig does before its C library begins"}

Sum = collections.namedtuple("Sum", "lines of_lines branches of_branches")
NOTHING = Sum(0, 0, 0, 0)


def area_of(path):
    """Of a source file; None: it is not ours, or not counted. A main/ and a room belong to the floor around them."""
    area = next((str(folder) for folder in path.parents if str(folder) in (*AREAS, *UNCOUNTED)), None)
    return area if area in AREAS else None


def programs():
    """[(name of the file in which it counts, program)]: CMake has written them down."""
    return [line.split(" ", 1) for line in (BUILD / "counted").read_text().splitlines()]


# --- counting ---------------------------------------------------------------------------------------------

def make_counters():
    """Empty ones, which every user may write to: processes of the jails map them before they give everything up."""
    shutil.rmtree(COUNTERS, ignore_errors=True) # what still runs keeps the old ones
    COUNTERS.mkdir(mode=0o755)
    for name, _ in programs():
        (COUNTERS / name).touch()
        (COUNTERS / name).chmod(0o666)
    closed = next((folder for folder in COUNTERS.parents if not folder.stat().st_mode & 1), None)
    if closed:
        print(f"coverage: {closed} is closed to other users: what runs as one of them is not counted", file=sys.stderr)


def lend(name):
    """What was fetched for the ordinary build serves this one, too."""
    if not (BUILD / name).is_symlink():
        (BUILD / name).symlink_to(ROOT / "build" / name)


def run_tests(words):
    """What pytest says at its end."""
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    env = {**os.environ, "BRIG_BUILD": str(BUILD), "PYTHONDONTWRITEBYTECODE": "1"}
    env.pop("BRIG_STORE", None)
    last = ""
    with subprocess.Popen(argv, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True, errors="replace") as tests:
        for line in tests.stdout:
            print(line, end="", flush=True)
            last = line.strip("= \n") or last
    if tests.returncode > 1: # 1: some failed, which is told and no reason to stop
        sys.exit(f"coverage: pytest ended with status {tests.returncode}: {last}")
    return last


# --- judging ----------------------------------------------------------------------------------------------

def llvm(tool, *words):
    done = subprocess.run([f"llvm-{tool}", *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"coverage: llvm-{tool}: {done.stderr.strip()[-1000:]}")
    return done.stdout


def merge():
    """What all programs have counted, as one; returns those that have."""
    counted = [(name, program) for name, program in programs() if (COUNTERS / name).stat().st_size]
    if not counted:
        sys.exit("coverage: no program of the build was executed")
    llvm("profdata", "merge", "-sparse", "-o", PROFILE, *[COUNTERS / name for name, _ in counted])
    return [program for _, program in counted]


def objects(executed):
    """Every program: what none of the executed ones has linked is not executed either, and counts."""
    every = [program for _, program in programs()]
    first = executed[0]
    return [first, *[word for program in every if program != first for word in ("-object", program)], f"-instr-profile={PROFILE}"]


def add(a, summary):
    return Sum(*[old + summary[kind][key] for old, (kind, key) in
                 zip(a, [("lines", "covered"), ("lines", "count"), ("branches", "covered"), ("branches", "count")])])


def sums(executed):
    """({area: Sum}, {file that was counted})"""
    found, files = {area: NOTHING for area in AREAS}, set()
    for row in json.loads(llvm("cov", "export", "-summary-only", *objects(executed)))["data"][0]["files"]:
        path = pathlib.Path(row["filename"])
        if not path.is_relative_to(ROOT) or not area_of(path.relative_to(ROOT)):
            continue
        files.add(path.relative_to(ROOT))
        area = area_of(path.relative_to(ROOT))
        found[area] = add(found[area], row["summary"])
    return found, files


def percent(n, of):
    return f"{100 * n / of:.1f}" if of else "-"


def row(name, s):
    return (f"{name:<16} {percent(s.lines, s.of_lines):>6} % {s.lines:>6} of {s.of_lines:<6}"
            f" {percent(s.branches, s.of_branches):>6} % {s.branches:>6} of {s.of_branches}")


def left_out(files):
    """Sources of the areas of which nothing is known."""
    sources = {path.relative_to(ROOT) for area in AREAS for path in (*(ROOT / area).glob("*.c"), *(ROOT / area).glob("main/*.c"))}
    return sorted(map(str, sources - files))


def table(words, said, found, files):
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    lines = [f"{datetime.date.today()}, commit {commit or 'unknown'}", f"pytest {' '.join(words)}: {said}", "",
             f"{'area':<16} {'lines':<24} branches", *[row(area, s) for area, s in found.items()],
             row("total", Sum(*map(sum, zip(*found.values())))), ""]
    lines += [f"not counted: {folder}, {why}" for folder, why in UNCOUNTED.items()]
    lines += ["not counted: what tests build for themselves, as fuzzers' replays under sanitizers and what is installed",
              *[f"not counted: {name}, which has no code, or is of a program that was not executed" for name in left_out(files)]]
    return "\n".join(lines) + "\n"


def main():
    words = sys.argv[1:]
    pages = words[:1] == ["--html"]
    words = words[pages:]
    make_counters()
    lend("store")
    lend("node")
    said = run_tests(words)
    executed = merge()
    text = table(words, said, *sums(executed))
    TABLE.write_text(text)
    if pages:
        llvm("cov", "show", "-format=html", "-show-branches=count", "-ignore-filename-regex=/(tests|tools|bench)/", "-output-dir", PAGES, *objects(executed))
    print(f"\n{text}\nwritten to {TABLE.relative_to(ROOT)}{f'; pages: {PAGES.relative_to(ROOT)}/index.html' if pages else ''}")


if __name__ == "__main__":
    main()
