#!/usr/bin/python3
"""summary - the record of a run, for people: brig run --json FILE | tools/summary.py <(brig explain --json basic)"""
import json
import sys

MISSING = "missing:"  # before the name of a layer that this host could not put in force


def size(n):
    for unit in "B", "KiB", "MiB", "GiB":
        if n < 1024 or unit == "GiB":
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024


def known(value, show=str):
    return "not measured here" if value is None else show(value)


def ended(record):
    if record["exit_reason"] == "exited":
        return f"exited by itself, status {record['exit_code']}"
    if record["exit_reason"] == "signaled":
        return f"killed by {record['signal']}"
    error = record.get("error") or {}
    return record["exit_reason"].replace("_", " ") + (f": {error['message']}" if error.get("message") else "")


def wrapped(words, width=78, indent=13):
    line, lines = "", []
    for word in words:
        if line and len(line) + len(word) + 3 > width - indent:
            lines.append(line)
            line = ""
        line += (" · " if line else "") + word
    return ("\n" + " " * indent).join([*lines, line])


def milliseconds(value, of):
    return f"{of} not measured here" if value is None else f"{value:.1f} ms {of}"


def of_limit(value, limit, show=str):
    return known(value, show) + (f" at most, of {show(limit)}" if value is not None else "")


def main():
    record = json.load(sys.stdin)
    with open(sys.argv[1]) as plan:
        limits = json.load(plan)["limits"]
    print(record.get("stdout") or "", end="")
    print(record.get("stderr") or "", end="", file=sys.stderr)
    rows = [
        ("run", f"{record['run_id']}, profile {record['profile']}"),
        ("ended", ended(record)),
        ("took", f"{milliseconds(record['wall_ms'], 'wall')}, of {limits['wall_ms'] // 1000} s, {milliseconds(record['cpu_ms'], 'CPU')}, "
                 f"after {milliseconds(record['setup_ms'], 'to build the jail')}"),
        ("memory", of_limit(record["memory_peak_bytes"], limits["memory_bytes"], size)),
        ("processes", of_limit(record["pids_peak"], limits["pids"])),
        ("refused", ", ".join(hit["name"] for hit in record["limits_hit"]) or "nothing that a limit forbids"),
        ("layers", wrapped(row for row in record["isolation"] if not row.startswith(MISSING))),
        ("missing", wrapped(row.removeprefix(MISSING) for row in record["isolation"] if row.startswith(MISSING)) or "no layer"),
    ]
    print()
    for name, text in rows:
        print(f"  {name:<10} {text}")
    return 0 if record["exit_reason"] == "exited" and record["exit_code"] == 0 else 1


sys.exit(main())
