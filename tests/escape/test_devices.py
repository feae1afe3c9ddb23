"""The host's /dev/null is believed for its number, not for its name (CVE-2025-31133)."""
import subprocess

import pytest

from support import brig as tool
from support import host

FALSE = {
    "an empty file": "touch $2/file && mount --bind $2/file /dev/null",
    "another device": "mount --bind /dev/zero /dev/null",
    "a folder's file behind a link": "mount -t tmpfs none /dev && touch $2/file && ln -s $2/file /dev/null",
}
RUN = " && exec \"$1\" run \"$2/program.py\""


@pytest.mark.private("brig's own mounts are false; a service has the host's")
@pytest.mark.row("B16")
@pytest.mark.parametrize("swap", FALSE.values(), ids=[f"{what} as /dev/null is refused" for what in FALSE])
def test_false_null(jail, tmp_path, nothing_left, swap):
    (tmp_path / "program.py").write_text("print(open('/dev/null').read())")
    done = subprocess.run(["unshare", "--mount", "sh", "-c", swap + RUN, "sh", tool.binary(), tmp_path], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, env=tool.environment())
    assert done.returncode == 125 and "set-up step base-mounts: /dev/null" in done.stderr and done.stdout == "", done


@pytest.mark.control("B16")
def test_control_a_false_null_is_believed_without_a_jail(needs_root, tmp_path):
    script = FALSE["another device"] + f" && {host.PYTHON} -c \"print(open('/dev/null', 'rb').read(3))\""
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", "", tmp_path], capture_output=True, text=True)
    assert done.stdout == "b'\\x00\\x00\\x00'\n", done
