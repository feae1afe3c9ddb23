#!/usr/bin/python3
"""Writes tests/times, the seconds of each test file in each tier, and prints the slowest tests: from what the last runs left in build/times."""
import collections
import json
import pathlib

REPO = pathlib.Path(__file__).resolve().parent.parent


def main():
    files, tests = collections.Counter(), []
    for path in sorted((REPO / "build" / "times").glob("*.json")):
        taken = json.loads(path.read_text())
        for nodeid, seconds in taken.items():
            files[path.stem, nodeid.split("::", 1)[0]] += seconds
        tests += [(seconds, path.stem, nodeid) for nodeid, seconds in taken.items()]
        print(f"{path.stem}: {len(taken)} tests, {sum(taken.values()):.0f} s one after the other")
    (REPO / "tests" / "times").write_text("".join(f"{tier} {seconds:.1f} {name}\n" for (tier, name), seconds in files.most_common() if seconds >= 1))
    for seconds, tier, nodeid in sorted(tests, reverse=True)[:60]:
        print(f"{seconds:7.1f} {tier:5} {nodeid}")


main()
