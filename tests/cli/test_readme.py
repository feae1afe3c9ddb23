"""Every command of the README works, in the order in which it is shown."""
import os
import pathlib
import re
import subprocess

import pytest

from support import host

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = "./dev ", "{", "claude "  # what the suite itself is started by; what goes into a file


def commands():
    """(line, expected status): indented lines; "status N" in the comment says that it is not 0."""
    for line in re.findall(r"^    (\S.*)$", (ROOT / "README.md").read_text().split("## The processes")[0], re.M):
        if not line.startswith(SKIPPED):
            status = re.search(r"#.*\bstatus (\d+)", line)
            yield line, int(status[1]) if status else 0


@pytest.mark.requirement("A13")
def test_every_command_of_the_readme(jail, tmp_path):
    lack = host.lacks("rootfs:data-science")
    if lack:
        pytest.skip(lack)
    wrong = []
    for line, status in commands():
        line = line.replace("/tmp/", f"{tmp_path}/")
        done = subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, text=True, timeout=host.HANG,
                              env={**os.environ, "LC_ALL": "C"})
        if done.returncode != status:
            wrong.append(f"{line}: status {done.returncode}, not {status}: {done.stderr.strip()[-300:]}")
    assert wrong == []
