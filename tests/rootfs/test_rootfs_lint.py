"""lint: each rule finds what it is for, in a tree made by hand."""
import os
import shutil
import stat
import subprocess

import pytest

from support import terminal


PLACES = "dev/pts dev/shm etc/brig opt/packages proc tmp workspace".split()
DEVICES = "dev/null dev/zero dev/full dev/random dev/urandom".split()


@pytest.fixture
def tree(tmp_path):
    """A tree that passes: what a cell needs, a loader, a C library, a program that needs it."""
    root = tmp_path / "tree"
    for path in PLACES:
        (root / path).mkdir(parents=True)
    for path in DEVICES:
        (root / path).touch()
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


# --- what a cell needs ---

@pytest.mark.parametrize("path", PLACES + DEVICES)
def test_a_place_that_a_cell_needs_and_is_missing_is_told_with_what_to_type(rootfs, tree, path):
    kind, command = ("a directory", "mkdir -p") if path in PLACES else ("a file", "touch")
    remove(tree / path)
    finding = f"lint: /{path}: missing, and a cell needs {kind} there; in the tree, type: {command} {path} [cell]"
    assert findings(rootfs, tree) == [finding]
    typed(tree, finding)
    assert findings(rootfs, tree) == []


@pytest.mark.parametrize("path, make, finding", [
    ("dev/null", lambda path: path.mkdir(), "a directory, and a cell needs a file there"),
    ("dev/null", lambda path: path.symlink_to("zero"), "a link, and a cell needs a file there"),
    ("tmp", lambda path: path.symlink_to("usr"), "a link, and a cell needs a directory there"),
    ("workspace", lambda path: path.touch(), "a file, and a cell needs a directory there"),
])
def test_something_else_in_such_a_place_is_told_with_what_to_type(rootfs, tree, path, make, finding):
    remove(tree / path)
    make(tree / path)
    [line] = findings(rootfs, tree)
    assert line.startswith(f"lint: /{path}: {finding}; in the tree, type: ")
    typed(tree, line)
    assert findings(rootfs, tree) == []


def test_a_tree_that_has_nothing_for_a_cell_is_whole_when_all_was_typed(rootfs, tree):
    for path in "dev proc tmp workspace".split():
        remove(tree / path)
    for line in findings(rootfs, tree):
        typed(tree, line)
    assert findings(rootfs, tree) == []


def remove(path):
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def typed(tree, finding):
    subprocess.run(["sh", "-c", finding.split("type: ")[1].removesuffix(" [cell]")], cwd=tree, check=True)
