#!/usr/bin/python3
"""Prints the tests that cover what differs from the upstream branch (or from HEAD, where there is none) and what is not committed."""
import pathlib
import subprocess

REPO = pathlib.Path(__file__).resolve().parent.parent
# The beginning of a path, and what tests it. The first row that fits counts; a test file is covered by itself.
COVERED = [
    ("tests/support/", ["tests"]), ("tests/conftest.py", ["tests"]), ("tests/worker", ["tests"]), ("CMakeLists.txt", ["tests"]),
    ("tests/vm/", []), # ./dev test nightly guests
    ("common/json", ["tests/unit", "tests/release/test_floors.py", "tests/run", "tests/mcp"]), ("common/protocol", ["tests/unit", "tests/release/test_floors.py", "tests/run", "tests/mcp"]),
    ("common", ["tests/unit", "tests/release/test_floors.py", "tests/run", "tests/service"]),
    ("jail/spec", ["tests/unit", "tests/release/test_floors.py", "tests/release/test_golden.py", "tests/jail", "tests/run", "tests/attack"]),
    ("jail/init", ["tests/release/test_floors.py", "tests/run", "tests/attack"]),
    ("jail/profile", ["tests/unit", "tests/release/test_floors.py", "tests/jail", "tests/run", "tests/service"]), ("jail/doctor", ["tests/unit", "tests/release/test_floors.py", "tests/run"]),
    ("jail/seccomp", ["tests/unit", "tests/release/test_floors.py", "tests/jail", "tests/run", "tests/attack", "tests/service"]),
    ("jail/cgroup", ["tests/unit", "tests/release/test_floors.py", "tests/groups", "tests/run", "tests/attack", "tests/service"]),
    *[(f"jail/{floor}", ["tests/unit", "tests/release/test_floors.py", "tests/run", "tests/attack", "tests/service"])
      for floor in ("privilege", "messages", "child", "zygote", "cell", "runner", "launcher")],
    ("jail/zygote/module", ["tests/release/test_floors.py", "tests/service", "tests/rootfs/test_zygote_extension.py"]),
    ("jail/guest", ["tests/jail", "tests/run/test_program_report.py", "tests/mcp/test_mcp_replies.py"]),
    ("jail/supervisor", ["tests/unit", "tests/release/test_floors.py", "tests/service"]),
    ("jail/monitor", ["tests/unit", "tests/release/test_floors.py", "tests/service"]), *[(f"jail/{floor}", ["tests/unit", "tests/release/test_floors.py", "tests/service"]) for floor in ("config", "plan", "server", "daemon")], ("jail/audit", ["tests/unit", "tests/release/test_floors.py", "tests/run/test_audit_journal.py", "tests/service"]),
    ("jail/proxy", ["tests/unit", "tests/release/test_floors.py", "tests/network"]),
    ("jail/metrics", ["tests/release/test_floors.py", "tests/service/test_metrics.py", "tests/service/test_metrics_http.py"]),
    ("jail/cli", ["tests/unit", "tests/release/test_floors.py", "tests/run"]), ("profiles", ["tests/release/test_golden.py", "tests/jail", "tests/attack", "tests/run"]),
    ("api", ["tests/unit", "tests/release/test_floors.py", "tests/api"]), ("mcp", ["tests/unit", "tests/release/test_floors.py", "tests/mcp", "tests/mcp"]), ("rootfs-builder", ["tests/unit", "tests/release/test_floors.py", "tests/rootfs"]),
    ("recipes", ["tests/rootfs"]), ("bench", ["tests/run/test_bench.py"]), ("dev", ["tests/run/test_dev.py"]), ("examples/mcp", ["tests/mcp/test_mcp_snippets.py"]),
    ("examples/rootfs", ["tests/rootfs"]), ("examples", ["tests/run/test_examples.py"]), ("man", ["tests/run/test_man.py", "tests/release/test_golden.py"]), ("packaging", ["tests/run", "tests/mcp/test_mcp_snippets.py"]),
    ("tools/requirement", ["tests/run/test_requirements.py"]), ("tools/docgen", ["tests/run/test_man.py", "tests/release/test_golden.py"]), ("tools", ["tests/run/test_dev.py"]),
    ("tests/mcp/conformance", ["tests/release/test_floors.py", "tests/mcp", "tests/mcp"]), ("tests/service", ["tests/service"]), ("tests/attack", ["tests/attack"]), ("tests/fuzz", ["tests/fuzz"]), # what its tests share
]


def git(*words):
    return subprocess.run(["git", "-C", REPO, *words], capture_output=True, text=True)


def changed():
    upstream = git("merge-base", "HEAD", "@{upstream}").stdout.strip() or "HEAD"
    listed = git("diff", "--name-only", upstream).stdout + git("ls-files", "--others", "--exclude-standard").stdout
    return sorted(set(listed.split("\n")) - {""})


def covering(path):
    name = pathlib.PurePath(path).name
    if path.startswith("tests/") and name.startswith("test_"):
        return [path] if (REPO / path).exists() else []
    row = next((tests for start, tests in COVERED if path.startswith(start)), None)
    if row is not None:
        return row
    return [str(pathlib.PurePath(path).parent)] if path.startswith("tests/") else []


def main():
    found = {test for path in changed() for test in covering(path) if (REPO / test).exists()}
    for test in sorted(found):
        if not any(str(above) in found for above in pathlib.PurePath(test).parents):
            print(test)


if __name__ == "__main__":
    main()
