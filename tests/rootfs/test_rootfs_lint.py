"""lint: each rule finds what it is for, in a tree made by hand."""
import os
import shutil
import stat
import subprocess

import pytest

from support import terminal


@pytest.fixture
def tree(tmp_path):
    """A tree that passes: a loader, a C library, a program that needs it."""
    root = tmp_path / "tree"
    (root / "usr/bin").mkdir(parents=True)
    (root / "etc/ld.so.conf.d").mkdir(parents=True)
    (root / "etc/ld.so.conf.d/here.conf").write_text("# libraries\n/libs\n")
    (root / "libs").mkdir()
    (root / "lib64").mkdir()
    shutil.copy(os.path.realpath("/lib64/ld-linux-x86-64.so.2"), root / "lib64/ld-linux-x86-64.so.2")
    libc = subprocess.run(["/usr/bin/ldd", "/bin/true"], capture_output=True, text=True, check=True).stdout.split("libc.so.6 => ")[1].split()[0]
    shutil.copy(libc, root / "libs/libc.so.6")
    shutil.copy("/bin/true", root / "usr/bin/true")
    return root


def findings(rootfs, tree):
    done = rootfs("lint", tree)
    assert done.returncode == (1 if done.stdout else 0), done.stderr
    return done.stdout.splitlines()


def test_a_clean_tree_passes(rootfs, tree):
    assert findings(rootfs, tree) == []


def test_a_setuid_file_is_found(rootfs, tree):
    (tree / "usr/bin/true").chmod(0o4755)
    assert findings(rootfs, tree) == ["lint: /usr/bin/true: setuid (mode 4755) [setid]"]


def test_a_setgid_directory_is_found(rootfs, tree):
    (tree / "usr").chmod(0o2755)
    assert findings(rootfs, tree) == ["lint: /usr: setgid (mode 2755) [setid]"]


def test_a_device_node_is_found(rootfs, tree, needs_root):
    os.mknod(tree / "null", 0o644 | stat.S_IFCHR, os.makedev(1, 3))
    assert findings(rootfs, tree) == ["lint: /null: a device node, socket or pipe [type]"]


def test_a_pipe_is_found_and_not_waited_for(rootfs, tree):
    os.mkfifo(tree / "pipe", 0o644)
    assert findings(rootfs, tree) == ["lint: /pipe: a device node, socket or pipe [type]"]


def test_a_file_capability_is_found(rootfs, tree, needs_root):
    os.setxattr(tree / "usr/bin/true", "security.capability", bytes.fromhex("0000000200200000000000000000000000000000"))
    assert findings(rootfs, tree) == ["lint: /usr/bin/true: has the extended attribute security.capability [attributes]"]


def test_a_hard_link_is_found(rootfs, tree):
    os.link(tree / "usr/bin/true", tree.parent / "outside")
    assert findings(rootfs, tree) == ["lint: /usr/bin/true: has 2 names (hard links) [hardlink]"]


def test_a_file_that_the_world_may_write_is_found(rootfs, tree):
    (tree / "usr/bin/true").chmod(0o757)
    assert findings(rootfs, tree) == ["lint: /usr/bin/true: writable by group or others (mode 0757) [writable]"]


def test_a_file_of_another_owner_is_found(rootfs, tree, needs_root):
    os.chown(tree / "usr/bin/true", 1234, 1234)
    assert findings(rootfs, tree) == ["lint: /usr/bin/true: belongs to uid 1234 [owner]"]


@pytest.mark.parametrize("target, finding", [
    ("../../../etc/passwd", "leads out of the tree: -> ../../../etc/passwd"),
    ("/../etc", "leads out of the tree: -> /../etc"),
    ("/etc/passwd", "leads to nothing: -> /etc/passwd (No such file or directory)"),
    ("link", "leads to nothing: -> link (Too many levels of symbolic links)"),
    ("true", None),
    ("/usr/bin/true", None),
    ("../../libs", None),
    ("/proc/self/fd", None),
])
def test_a_link_must_stay_in_the_tree_and_name_something(rootfs, tree, target, finding):
    (tree / "usr/bin/link").symlink_to(target)
    assert findings(rootfs, tree) == ([f"lint: /usr/bin/link: {finding} [link]"] if finding else [])


def test_a_missing_library_is_found(rootfs, tree):
    (tree / "libs/libc.so.6").unlink()
    assert "lint: /usr/bin/true: needs a library that is not in the tree: libc.so.6 [libraries]" in findings(rootfs, tree)


def test_a_missing_loader_is_found(rootfs, tree):
    (tree / "lib64/ld-linux-x86-64.so.2").unlink()
    assert "lint: /usr/bin/true: its loader is not in the tree: /lib64/ld-linux-x86-64.so.2 [libraries]" in findings(rootfs, tree)


def test_a_library_that_is_a_link_to_the_host_does_not_count(rootfs, tree):
    (tree / "libs/libc.so.6").rename(tree.parent / "libc.so.6")
    (tree / "libs/libc.so.6").symlink_to(tree.parent / "libc.so.6")
    assert "lint: /usr/bin/true: needs a library that is not in the tree: libc.so.6 [libraries]" in findings(rootfs, tree)


@pytest.mark.parametrize("cut", [4, 40, 63, 64, 200, 5000])
def test_a_program_that_is_cut_off_is_found(rootfs, tree, cut):
    data = (tree / "usr/bin/true").read_bytes()[:cut]
    (tree / "usr/bin/true").write_bytes(data)
    [line] = findings(rootfs, tree)
    assert line.startswith("lint: /usr/bin/true: ") and line.endswith(" [libraries]")


def test_a_name_with_a_control_character_is_found_and_not_printed(rootfs, tree):
    (tree / "bad\x1b[31m").touch()
    assert findings(rootfs, tree) == ["lint: (a name that cannot be shown): its name is not printable UTF-8 [name]"]


@pytest.mark.parametrize("name", [name for name in terminal.NAMES.values() if terminal.obeyed(name) and "/" not in name])
def test_a_name_that_a_terminal_obeys_is_found_and_not_printed(rootfs, tree, name):
    (tree / name).touch()
    assert findings(rootfs, tree) == ["lint: (a name that cannot be shown): its name is not printable UTF-8 [name]"]


@pytest.mark.parametrize("name", ["\x1b[31mlibc", "\u009b31m", "\u202ecba"])
def test_what_a_link_and_a_program_name_is_printed_as_plain_text(rootfs, tree, name):
    (tree / "usr/bin/link").symlink_to(name)
    data = (tree / "usr/bin/true").read_bytes()
    (tree / "usr/bin/true").write_bytes(data.replace(b"libc.so.6\0", name.encode()[:9].ljust(9, b"x") + b"\0"))
    said = "\n".join(findings(rootfs, tree))
    assert not terminal.obeyed(said) and "/usr/bin/link: leads to nothing: -> ?" in said and "needs a library that is not in the tree: ?" in said, said


def test_only_twenty_findings_are_shown(rootfs, tree):
    for i in range(40):
        (tree / str(i)).symlink_to("nothing")
    lines = findings(rootfs, tree)
    assert len(lines) == 21 and lines[-1] == "lint: and 20 more"
