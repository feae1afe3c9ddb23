"""A clone in a clean minimal Debian tree, with the network: every line of the README's examples as it stands, as root and as a plain user; the demo and the fast tests.

What needs systemd is in test_in_guest.py, and the client of another project is left out. It takes minutes and installs the build's packages in the tree.
"""
import pathlib
import shlex
import shutil
import subprocess

import pytest

from support import minimal, pages

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEFT_OUT = "sudo ", "tar xpf ", "brig-0", "claude ", "./dev test"
USERS = {"root": ("/root", ""), "alice": ("/home/alice", "HOME=/home/alice setpriv --reuid=1234 --regid=1234 --clear-groups")}
MINUTES = 30


def make_tree(tree, suite):
    """Debian's minimal one, with a clone of what is tracked here for each user, and the way to the network that this host has."""
    minimal.make(tree, "minbase", suite=suite)
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, check=True).stdout.decode().split("\0")
    for home, _ in USERS.values():
        for name in filter(None, listed):
            made = tree / home.lstrip("/") / "brig" / name
            made.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, made, follow_symlinks=False)
    shutil.copytree(ROOT / ".git", tree / "root/brig/.git", symlinks=True)
    for place in ("etc/resolv.conf", "etc/hosts"):
        shutil.copy(f"/{place}", tree / place)
    shutil.copytree("/etc/apt/apt.conf.d", tree / "etc/apt/apt.conf.d", dirs_exist_ok=True)
    with open(tree / "etc/passwd", "a", encoding="ascii") as passwd, open(tree / "etc/group", "a", encoding="ascii") as group:
        passwd.write("alice:x:1234:1234::/home/alice:/bin/bash\n")
        group.write("alice:x:1234:\n")
    subprocess.run(["chown", "-R", "1234:1234", tree / "home/alice"], check=True)
    return tree


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def tree(request, tmp_path_factory, needs_root):
    return make_tree(tmp_path_factory.mktemp("clone") / "tree", request.param)


@pytest.mark.nightly(seconds=2 * 3600)
@pytest.mark.alone("runs the fast tests, which take all processors")
def test_the_demo_and_the_fast_tests_are_green_in_a_tree_of_debian_13(tmp_path, needs_root):
    tree = make_tree(tmp_path / "tree", "trixie")
    (tree / "root").chmod(0o755) # tests have plain users, who start programs of the clone
    script = "export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8; cd /root/brig; ./dev demo && ./dev test && echo both are green"
    (tmp_path / "folder").mkdir()
    done = minimal.run(tree, tmp_path / "folder", script, 2 * 3600, network=True)
    assert done.returncode == 0 and done.stdout.endswith("both are green\n"), done.stdout[-6000:] + done.stderr[-2000:]


@pytest.mark.long
@pytest.mark.parametrize("user", USERS)
def test_every_example_of_the_readme_works_as_it_stands(tree, user, tmp_path):
    """root comes first: its `./dev demo` installs what the plain user's would ask root for."""
    home, become = USERS[user]
    lines = "set +e\n"
    for line, statuses in pages.commands(ROOT / "README.md", LEFT_OUT):
        if line.startswith("export "):
            lines += f"{line}\n"
            continue
        statuses = statuses | {125} if become and "--memory" in line else statuses
        lines += f"( {line}\n) >/tmp/out 2>&1 </dev/null\nstatus=$?\n"
        lines += f"case $status in {'|'.join(map(str, statuses))}) ;; *) echo {shlex.quote(line)}: $status; tail -n 20 /tmp/out; exit 1 ;; esac\n"
    script = f"export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root; cd {home}/brig; {become} bash -c {shlex.quote(lines + 'ls -s /tmp/sales.png /tmp/results/sales.csv && echo all of them')}"
    done = minimal.run(tree, tmp_path, script, MINUTES * 60, network=True)
    assert done.returncode == 0 and done.stdout.endswith("all of them\n"), done.stdout[-3000:] + done.stderr[-2000:]
