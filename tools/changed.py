#!/usr/bin/python3
"""Prints the tests that cover what differs from the upstream branch (or from HEAD, where there is none) and what is not committed."""
import pathlib
import subprocess

REPO = pathlib.Path(__file__).resolve().parent.parent
# The beginning of a path, and what tests it. The first row that fits counts; a test file is covered by itself.
COVERED = [
    ("tests/support/", ["tests"]), ("tests/conftest.py", ["tests"]), ("tests/worker", ["tests"]), ("CMakeLists.txt", ["tests"]),
    ("tests/vm/", []), # ./dev test nightly guests
    ("common/json", ["tests/unit", "tests/floors", "tests/cli", "tests/mcp"]),
    ("common", ["tests/unit", "tests/floors", "tests/cli", "tests/daemon"]),
    ("jail/spec", ["tests/unit", "tests/floors", "tests/golden", "tests/promises", "tests/cli", "tests/escape"]),
    ("jail/init", ["tests/floors", "tests/cli", "tests/escape"]),
    ("jail/profile", ["tests/unit", "tests/floors", "tests/promises", "tests/cli", "tests/daemon"]), ("jail/doctor", ["tests/unit", "tests/floors", "tests/cli"]),
    ("jail/seccomp", ["tests/unit", "tests/floors", "tests/promises", "tests/cli", "tests/escape", "tests/daemon"]),
    ("jail/cgroup", ["tests/unit", "tests/floors", "tests/groups", "tests/cli", "tests/escape", "tests/daemon"]),
    *[(f"jail/{floor}", ["tests/unit", "tests/floors", "tests/cli", "tests/escape", "tests/daemon"])
      for floor in ("privilege", "order", "child", "fork", "cell", "watch", "launcher")],
    ("jail/zygote", ["tests/floors", "tests/daemon", "tests/rootfs/test_zygote_extension.py"]),
    ("jail/guest", ["tests/guest", "tests/cli/test_program_report.py", "tests/mcp/test_mcp_replies.py"]),
    ("jail/supervisor", ["tests/unit", "tests/floors", "tests/daemon"]),
    ("jail/keeper", ["tests/unit", "tests/floors", "tests/daemon"]), *[(f"jail/{floor}", ["tests/unit", "tests/floors", "tests/daemon"]) for floor in ("rules", "plan", "door", "daemon")], ("jail/audit", ["tests/unit", "tests/floors", "tests/cli/test_audit_journal.py", "tests/daemon"]),
    ("jail/proxy", ["tests/unit", "tests/floors", "tests/network"]),
    ("jail/metrics", ["tests/floors", "tests/daemon/test_metrics.py", "tests/daemon/test_metrics_http.py"]),
    ("jail/cli", ["tests/unit", "tests/floors", "tests/cli"]), ("profiles", ["tests/golden", "tests/promises", "tests/escape", "tests/cli"]),
    ("mcp", ["tests/unit", "tests/floors", "tests/mcp", "tests/conformance"]), ("rootfs-builder", ["tests/unit", "tests/floors", "tests/rootfs"]),
    ("recipes", ["tests/rootfs"]), ("bench", ["tests/cli/test_bench.py"]), ("dev", ["tests/cli/test_dev.py"]), ("examples/mcp", ["tests/mcp/test_mcp_snippets.py"]),
    ("examples/rootfs", ["tests/rootfs"]), ("examples", ["tests/cli/test_examples.py"]), ("man", ["tests/cli/test_man.py", "tests/golden"]), ("packaging", ["tests/cli", "tests/mcp/test_mcp_snippets.py"]),
    ("tools/requirement", ["tests/cli/test_requirements.py"]), ("tools/docgen", ["tests/cli/test_man.py", "tests/golden"]), ("tools", ["tests/cli/test_dev.py"]),
    ("tests/mcp/conformance", ["tests/floors", "tests/conformance", "tests/mcp"]), ("tests/daemon", ["tests/daemon"]), ("tests/escape", ["tests/escape"]), ("tests/fuzz", ["tests/fuzz"]), # what its tests share
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
