"""Files into a jail and out of it: --put, --get, --out, the protocol's key files, and files= and get= of the Python package."""
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys

import pytest

from support import daemon as daemons
from support import host

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
import brig  # noqa: E402

pytestmark = pytest.mark.usefixtures("jail")
BRIG = str(host.build_dir() / "bin" / "brig")
END, FILE, EXECUTABLE, GET, LEFT = range(5)


@pytest.fixture(scope="module")
def service():
    with daemons.Daemon() as running:
        yield running


@pytest.fixture(params=["private", "service"])
def where(request, monkeypatch):
    monkeypatch.delenv("BRIG_SOCKET", raising=False)
    if request.param == "service":
        monkeypatch.setenv("BRIG_SOCKET", str(request.getfixturevalue("service").path))
    return request.param


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(where, *options, code="pass", stdin=subprocess.DEVNULL):
    words = [BRIG, "run", *(["--private"] if where == "private" else []), *map(str, options), "-c", code]
    return subprocess.run(words, capture_output=True, text=True, errors="surrogateescape", timeout=60, stdin=stdin, check=False)


def package(where):
    return {"server": "private"} if where == "private" else {"server": "service", "path": os.environ["BRIG_SOCKET"]}


# --- what users do ---

def test_a_file_that_is_put_can_be_read_and_changed_and_comes_back(where, here):
    (here / "table.csv").write_text("a,b\n")
    done = run(where, "--put", "table.csv", "--get", "table.csv:new.csv", code="open('table.csv', 'a').write('1,2\\n')")
    assert (done.returncode, done.stderr) == (0, "") and (here / "new.csv").read_text() == "a,b\n1,2\n" and (here / "table.csv").read_text() == "a,b\n"


def test_a_directory_is_put_as_a_whole_under_the_name_that_was_said(where, here):
    (here / "src" / "deep").mkdir(parents=True)
    (here / "src" / "one").write_text("1")
    (here / "src" / "deep" / "two").write_text("2")
    (here / "src" / "tool").write_text("#!/bin/sh\necho ran\n")
    (here / "src" / "tool").chmod(0o755)
    done = run(where, "--put", "src:data/in", code="import os; print(sorted(os.path.join(r, f) for r, _, fs in os.walk('.') for f in fs), "
               "os.access('data/in/tool', os.X_OK), os.access('data/in/one', os.X_OK), os.stat('data/in/one').st_uid)")
    assert done.stdout == "['./data/in/deep/two', './data/in/one', './data/in/tool', './main.py'] True False 1000\n", done.stderr


def test_a_tool_can_be_executed_inside_without_set_user_id_and_comes_back_as_data(where, here):
    (here / "tool").write_text("#!/bin/sh\necho ran\n")
    (here / "tool").chmod(0o6755)
    done = run(where, "--put", "tool", "--get", "tool:back", code="import os, subprocess\nprint(oct(os.stat('tool').st_mode), subprocess.check_output('./tool', text=True))")
    assert (done.returncode, done.stdout) == (0, "0o100755 ran\n\n") and not (here / "back").stat().st_mode & 0o7111, done


def test_out_brings_all_that_the_program_left_in_out(where, here):
    done = run(where, "--out", "results", code="import os; os.makedirs('out/a'); open('out/a/b', 'w').write('x'); open('out/c', 'wb').write(bytes(1 << 20)); open('not', 'w')")
    assert done.returncode == 0, done.stderr
    assert sorted(p.relative_to(here).as_posix() for p in here.rglob("*") if p.is_file()) == ["results/a/b", "results/c"]
    assert (here / "results" / "c").stat().st_size == 1 << 20


def test_out_without_a_directory_out_is_told_and_is_no_failure(where, here):
    done = run(where, "--out", "results", code="open('result.txt', 'w')")
    assert (done.returncode, done.stderr) == (0, "brig: not saved: out: the program left no directory out in /workspace, or nothing in it\n"), done


def test_patterns_stop_at_a_slash_and_a_directory_means_all_in_it(where, here):
    code = "import os; os.makedirs('d/e'); [open(n, 'w').write(n) for n in ('a.txt', 'b.txt', 'c.csv', 'd/f.txt', 'd/e/g.txt')]"
    assert run(where, "--get", "*.txt:flat", "--get", "d/e:tree/", code=code).returncode == 0
    assert sorted(p.relative_to(here).as_posix() for p in here.rglob("*") if p.is_file()) == ["flat/a.txt", "flat/b.txt", "tree/g.txt"]


SEVERAL = "import os\nos.makedirs('o/p')\nfor name in 'a', 'b', 'o/x', 'o/p/c.csv': open(name, 'w').write(name)"


def test_empty_directories_go_in_and_come_out(where, here):
    for name in "src/data/out", "src/logs", "bare":
        (here / name).mkdir(parents=True)
    code = "import os\nprint(sorted(p for top in ('src', 'bare') for p, _, _ in os.walk(top)))\nfor name in 'out/models/v1', 'out/.cache', 'kept/a': os.makedirs(name)"
    done = run(where, "--put", "src", "--put", "bare", "--out", "got", "--get", "kept:far/away", code=code)
    assert (done.returncode, done.stdout) == (0, "['bare', 'src', 'src/data', 'src/data/out', 'src/logs']\n"), done
    assert sorted(str(path.relative_to(here)) for top in ("got", "far") for path in (here / top).rglob("*")) == ["far/away", "far/away/a", "got/models", "got/models/v1"]
    assert done.stderr == "brig: not saved: out/.cache: its name begins with a dot, and other programs may obey it; name it, or add --hidden\n"
    got = brig.run("import os\nos.makedirs('o/a')\nsorted(os.listdir('src'))", files={"src": here / "src"}, get=["o"], **package(where))
    assert (got.value, got.files.folders, dict(got.files), got.left_out) == (["data", "logs"], ["o/a"], {}, {})
    got.files.save(here / "saved")
    assert (here / "saved/o/a").is_dir()


def test_patterns_may_be_written_as_people_do_and_one_that_is_odd_costs_no_other_file(where, here):
    assert run(where, "--get", "/workspace/a", "--get", "o/", "--get", "**/c.csv:all/", code=SEVERAL).returncode == 0
    assert sorted(p.relative_to(here).as_posix() for p in here.rglob("*") if p.is_file()) == ["a", "o/p/c.csv", "o/x"]
    assert brig.run(SEVERAL, get=["./b", "o/", "none"], **package(where)).left_out == {"none": "none"}
    assert set(brig.run(SEVERAL, get=["."], **package(where)).files) == {"a", "b", "o/x", "o/p/c.csv"}
    with pytest.raises(ValueError, match="64 is the most"):
        brig.run("1", get=[f"{n}" for n in range(65)], **package(where))


HIDDEN = "import os; os.makedirs('out/.git/hooks'); [open(n, 'w').write(n) for n in ('out/.git/config', 'out/.git/hooks/x', 'out/a', '.envrc', 'b')]"


@pytest.mark.parametrize("options, come, hidden", [
    (["--out", "o"], ["o/a"], ["out/.git"]), (["--get", "*"], ["b", "out/a"], [".envrc", "out/.git"]), (["--get", "out/.git"], ["out/.git/config", "out/.git/hooks/x"], []),
    (["--get", ".*", "--get", "*"], [".envrc", "b", "out/a"], ["out/.git"]), (["--get", "*", "--hidden"], [".envrc", "b", "out/.git/config", "out/.git/hooks/x", "out/a"], [])])
def test_what_other_programs_obey_comes_out_only_by_its_name(where, here, options, come, hidden):
    """git status runs a command that out/.git/config names, and a shell what .envrc has."""
    done = run(where, *options, code=HIDDEN)
    assert done.returncode == 0 and sorted(p.relative_to(here).as_posix() for p in here.rglob("*") if p.is_file()) == come, done
    assert [line.split(": ")[2] for line in done.stderr.splitlines() if "begins with a dot" in line] == hidden, done.stderr


def test_save_of_the_python_package_writes_them_only_by_their_name(where, here):
    result = brig.run(HIDDEN, get=["*", "out/.git/config"], **package(where))
    assert sorted(pathlib.Path(path).relative_to(here).as_posix() for path in result.files.save(here)) == ["b", "out/.git/config", "out/a"]
    assert result.files.left_out == {".envrc": "hidden", "out/.git/hooks/x": "hidden"}
    assert len(result.files.save(here, replace=True, hidden=True)) == 5


def test_a_file_of_proc_is_put_with_what_is_read_from_it(where, here):
    done = run(where, "--put", "/proc/version:v", code="print(open('v').read(), end='')")
    assert done.stdout == pathlib.Path("/proc/version").read_text(), done.stderr


def test_files_come_out_whatever_ended_the_run(where, here):
    late = run(where, "--get", "r", "--timeout", "0.5", code="open('r', 'w').write('half')\nwhile True: pass")
    assert late.returncode == 124 and (here / "r").read_text() == "half"
    dead = run(where, "--get", "r", code="import os; open('r', 'w').write('dead'); os.kill(os.getpid(), 9)")
    assert dead.returncode == 137 and (here / "r").read_text() == "dead"


def test_the_record_lists_what_came_and_what_was_left_out(where, here):
    done = run(where, "--json", "--get", "*", "--get", "none", code="import os; open('r', 'w').write('12'); os.symlink('/etc/passwd', 'l'); os.mkfifo('p')")
    rows = {row["name"]: row for row in json.loads(done.stdout)["files"]}
    assert done.returncode == 74 and rows["r"] == {"name": "r", "bytes": 2, "saved": "r", "left_out": None}
    assert {name: row["left_out"] for name, row in rows.items()} == {"r": None, "l": "link", "p": "special", "none": "none"}


def test_a_command_takes_files_too(where, here):
    (here / "a").write_text("from here")
    done = subprocess.run([BRIG, "exec", *(["--private"] if where == "private" else []), "--put", "a", "--get", "b", "--", "cp", "a", "b"], capture_output=True,
                          text=True, timeout=60, check=False)
    assert (done.returncode, (here / "b").read_text()) == (0, "from here"), done.stderr


def test_the_python_package_gives_and_gets_files(where, here):
    (here / "p").write_bytes(b"path")
    result = brig.run("open('out.bin', 'wb').write(open('a').read().encode() + open('b', 'rb').read() + open('c/d').read().encode())",
                      files={"a": "text", "b": b"\0bytes", "c/d": here / "p"}, get=["*.bin", "missing"], **package(where))
    assert (result.value, result.files, result.left_out) == (14, {"out.bin": b"text\0bytespath"}, {"missing": "none"})
    assert brig.command(["sh", "-c", "cat in > out; mkfifo f"], files={"in": "1"}, get=["out", "f"], **package(where)).left_out == {"f": "special"}
    for name in "a/../b", "/workspace/a", "main.py", "a//b", "":
        with pytest.raises(ValueError, match="files: "):
            brig.run("1", files={name: "x"}, **package(where))


def test_runs_with_files_are_warm_where_the_profile_is(service, here):
    for _ in range(20):
        result = brig.run("open('r', 'w').write('1')", files={"a": "1"}, get=["r"], server="service", path=str(service.path))
        assert result.files == {"r": b"1"}
    assert result.record["warm"] is brig.run("1", server="service", path=str(service.path)).record["warm"]


# --- what is wrong is named ---

@pytest.mark.sample(8)
@pytest.mark.parametrize("options, words", [
    (["--put", "nope"], "--put nope: No such file or directory"),
    (["--put", "file:../up"], "the name ../up has . or .. in it"),
    (["--put", "file:/abs"], "has an empty component"),
    (["--put", "file:a//b"], "has an empty component"),
    (["--put", "file:" + "n" * 256], "more than 255 bytes"),
    (["--put", "file:main.py"], "main.py is the program itself; give the file another name"),
    (["--put", "file", "--put", "file"], "file comes twice"),
    (["--put", "file", "--put", "file:file/below"], "Not a directory"),
    (["--put", "file:shown/x", "--ro", "file:shown"], "Not a directory"),
    (["--put", "pipe"], "--put pipe: is neither a file nor a directory"),
    (["--put", "/"], "has no name of its own"),
    (["--get", "../x"], "the pattern has . or .. in it; name files as they lie below /workspace"),
    (["--get", "x:"], "nothing follows the colon"),
])
def test_a_bad_name_is_refused_before_the_program_runs(where, here, options, words):
    (here / "file").write_text("1")
    os.mkfifo(here / "pipe")
    host.open_way(here)
    done = run(where, *options, code="print('ran')")
    assert (done.returncode, done.stdout) == (125, "") and words in done.stderr, done.stderr


def test_what_does_not_fit_into_the_workspace_is_told(where, here):
    (here / "big").write_bytes(bytes(9 << 20))
    done = run(where, "--workspace-size", "8M", "--put", "big", code="print('ran')")
    assert (done.returncode, done.stdout) == (125, "") and "no room in /workspace for big; ask for more with --workspace-size" in done.stderr


# --- hostile programs ---

HOSTILE = """
import os
os.mkdir('out'); os.chdir('out')
open('good', 'w').write('good')
for name in (b'\\xff\\xfe', b'new\\nline', b'x' * 255, b'\\x1b[31m'):
    open(name, 'w').write('odd')
os.symlink('/etc/shadow', 'link'); os.symlink('..', 'up'); os.mkfifo('fifo')
s = __import__('socket').socket(1, 1); s.bind('sock')
with open('sparse', 'w') as f: f.truncate(1 << 50)
open('closed', 'w').write('c'); os.chmod('closed', 0)
os.makedirs('/'.join('d' * 40))
"""


def test_only_regular_files_come_out_and_what_is_left_out_says_why(where, here):
    done = run(where, "--json", "--out", "o", code=HOSTILE)
    record = json.loads(done.stdout)
    assert record["exit_reason"] == "exited", done.stdout
    left = {row["name"]: row["left_out"] for row in record["files"] if row["left_out"]}
    deep = [name for name, why in left.items() if why == "deep"]
    assert {name: why for name, why in left.items() if why != "deep"} == {"out/link": "link", "out/up": "link", "out/fifo": "special", "out/sock": "special",
                                                                         "out/sparse": "size", "out/closed": "unreadable"} and len(deep) == 1
    names = sorted(os.listdir(os.fsencode(here / "o")))
    assert names == sorted([b"good", b"\xff\xfe", b"new\nline", b"x" * 255, b"\x1b[31m"])
    assert all(stat.st_mode & 0o170111 == 0o100000 for stat in (os.lstat(os.path.join(os.fsencode(here / "o"), n)) for n in names))


def test_nothing_is_written_over_that_was_not_named(where, here):
    (here / "precious.txt").write_text("precious")
    (here / "o").mkdir()
    (here / "o" / "precious").symlink_to(here / "precious.txt")
    (here / "elsewhere").mkdir()
    (here / "o" / "dir").symlink_to(here / "elsewhere")
    code = "import os; os.makedirs('out/dir'); [open(n, 'w').write('evil') for n in ('precious.txt', 'out/precious', 'out/dir/x')]"
    done = run(where, "--get", "*.txt", "--out", "o", code=code)
    assert done.returncode == 74 and "precious.txt: there is a file of this name already" in done.stderr
    assert (here / "precious.txt").read_text() == "precious" and os.listdir(here / "elsewhere") == []
    assert run(where, "--get", "precious.txt", code=code).returncode == 0 and (here / "precious.txt").read_text() == "evil", "by its own name it was asked for"


def test_what_is_shown_read_only_does_not_come_out_and_is_not_written_to(where, here):
    host.open_way(here)
    (here / "shown").mkdir()
    (here / "shown" / "secret").write_text("secret")
    (here / "file").write_text("x")
    done = run(where, "--ro", "shown", "--get", "*:got", code="open('mine', 'w').write('1')")
    assert done.returncode == 0 and os.listdir(here / "got") == ["mine"], done.stderr
    refused = run(where, "--ro", "shown", "--put", "file:shown/new", code="print('ran')")
    assert (refused.returncode, refused.stdout, os.listdir(here / "shown")) == (125, "", ["secret"]) and "shown/new" in refused.stderr


def test_a_crowd_that_goes_on_writing_is_dead_before_its_files_are_read(where, here):
    code = """
import os
for i in range(10):
    if os.fork() == 0:
        os.setsid()
        while True:
            with open(f'f{i}', 'w') as f: f.write('x' * 5000)
            os.rename(f'f{i}', f'g{i}'); os.symlink('/etc/passwd', f'f{i}'); os.unlink(f'f{i}')
__import__('time').sleep(0.2)
"""
    done = run(where, "--json", "--get", "*:o", code=code)
    record = json.loads(done.stdout)
    sizes = {row["name"]: row["bytes"] for row in record["files"] if row["left_out"] is None}
    assert record["exit_reason"] == "exited" and sizes and all((here / "o" / name).stat().st_size == size for name, size in sizes.items())


def test_the_helper_is_not_seen_by_the_program_and_leaves_nothing_in_its_cell(where, here):
    (here / "a").write_text("1")
    code = "import os; print(sorted(p for p in os.listdir('/proc') if p.isdigit()), sorted(os.listdir('/proc/self/fd')), os.listdir('/workspace'))"
    with_files = run(where, "--put", "a:main.txt", "--get", "x*", code=code)
    without = run(where, code=code)
    assert with_files.stdout.replace("'main.txt', ", "").replace(", 'main.txt'", "") == without.stdout


# --- hostile clients ---

def entry(kind, name=b"", size=0):
    return struct.pack("=IIQ", kind, len(name), size) + name


def talk(where, sent, *, close=True):
    """The protocol by hand: what comes back on the socket for files, and the end of the run."""
    ours, theirs = socket.socketpair()
    with brig.Connection(**package(where)) as connection:
        ours.sendall(sent)
        if close:
            ours.shutdown(socket.SHUT_WR)
        request = {"op": "run", "files": True}
        try:
            result = connection.carry_out(request, [brig.client._sealed("print('ran')"), theirs.detach()], None, None, None)
            return result.stdout
        except brig.SetupFailed as error:
            return str(error)
        finally:
            ours.close()


@pytest.mark.sample(8)
@pytest.mark.parametrize("sent, answer", [
    (b"", "ended in the middle"),
    (b"\0" * 7, "ended in the middle"),
    (entry(FILE, b"a", 10) + b"short", "a: "),
    (entry(99, b"a"), "a header makes no sense"),
    (struct.pack("=IIQ", FILE, 1 << 31, 0), "a header makes no sense"),
    (entry(GET, b"a"), "only files come before the first end"),
    (entry(LEFT, b"a"), "only files come before the first end"),
    (entry(FILE, b""), "is empty"),
    (entry(FILE, b"a\0b"), "has a NUL in it"),
    (entry(FILE, b"../../etc/x"), "has . or .. in it"),
    (entry(FILE, b"/etc/x"), "has an empty component"),
    (entry(FILE, b"/".join([b"d"] * 40)), "32 directories deep"),
    (entry(FILE, b"a", (1 << 64) - 1) + b"x" * 4096, "a: "),
    (entry(END) + entry(END), "ran\n"),
    (entry(END), "ran\n"),
])
def test_a_client_that_lies_about_its_files_is_told_what_is_wrong(where, sent, answer):
    assert answer in talk(where, sent)


def test_a_client_that_does_not_know_empty_directories_gets_none(where):
    ours, theirs = socket.socketpair()
    with ours, brig.Connection(**package(where)) as connection:
        ours.sendall(entry(END) + entry(GET, b"o") + entry(END))
        connection.carry_out({"op": "run", "files": True}, [brig.client._sealed("import os\nos.makedirs('o/a')"), theirs.detach()], None, None, None)
        assert b"".join(iter(lambda: ours.recv(4096), b"")) == entry(END)


def test_a_descriptor_that_is_no_pair_is_refused(service):
    for fd in (os.open("/dev/null", os.O_RDWR), socket.socket(socket.AF_INET).detach(), socket.socket(socket.AF_UNIX).detach(),
               socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)[0].detach()):
        with brig.Connection("service", str(service.path)) as connection:
            with pytest.raises(brig.Refused, match="socketpair"):
                connection.carry_out({"op": "run", "files": True}, [brig.client._sealed("1"), fd], None, None, None)


def test_a_client_that_goes_away_ends_the_run_and_the_helper(service):
    ours, theirs = socket.socketpair()
    connection = brig.Connection("service", str(service.path))
    connection._send({"op": "run", "files": True}, [brig.client._sealed("open('r', 'wb').write(bytes(1 << 24))"), theirs.fileno()])
    theirs.close()
    ours.sendall(entry(END) + entry(GET, b"r") + entry(END))
    while True:
        said = connection._receive()[0]
        assert "error" not in said and said.get("event") != "ended", said
        if said.get("event") == "started":
            break
    assert ours.recv(1, socket.MSG_PEEK) # it sends, and we do not read
    connection.close()
    while ours.recv(1 << 20): # to its end: nothing holds the other side open
        pass
    assert brig.run("1", server="service", path=str(service.path)).ok
