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


LINKS = {"a link to a file": "rm dev/null && ln -s ../etc/passwd dev/null", "a link into /proc": "rm dev/null && ln -s /proc/self/fd/1 dev/null",
         "a link as the folder": "rm -r dev && ln -s usr dev"}


@pytest.mark.nightly
@pytest.mark.private("a store of its own")
@pytest.mark.row("B16")
@pytest.mark.parametrize("change", LINKS.values(), ids=LINKS)
def test_a_link_in_the_place_of_a_device_of_a_rootfs_leads_nowhere(jail, tmp_path, nothing_left, change):
    """The program has the true device, or there is no run."""
    tree = next((host.store_dir() / "names").glob("basic")).resolve()
    (tmp_path / "trees").mkdir()
    (tmp_path / "names").mkdir()
    subprocess.run(["cp", "-a", tree, tmp_path / "trees"], check=True)
    (tmp_path / "names/basic").symlink_to(f"../trees/{tree.name}")
    subprocess.run(["sh", "-c", change], cwd=tmp_path / "trees" / tree.name / "tree", check=True)
    (tmp_path / "program.py").write_text("import os\nprint(os.stat('/dev/null').st_rdev == os.makedev(1, 3), open('/dev/null').read() == '')")
    done = subprocess.run([tool.binary(), "run", "--private", tmp_path / "program.py"], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env=tool.environment({"BRIG_STORE": str(tmp_path)}))
    assert (done.returncode, done.stdout) == (0, "True True\n") or (done.returncode == 125 and "set-up step base-mounts: dev/null" in done.stderr), done
