"""Guests that serve, die or hang, played by a program: what is told of them, and that the parts of one that is lost are run by another."""
import subprocess
import sys
import types

import pytest

import arm64
import fleet
import guests
import machine
from support import host

GUEST = """
import json, sys, time
def say(**word): print(json.dumps(word), flush=True)
say(up="1")
for name in map(str.strip, sys.stdin):
    say(start=f"{name}.py::test_it", location=[f"{name}.py", 1, "test_it"])
    if name == "dies": sys.exit("out of memory")
    if name == "hangs": time.sleep(600)
    say(part=name, status=0, output="1 passed")
"""


WORLD = types.SimpleNamespace(KIND=machine.X86, BOOTS={"systemd": "", "bare": ""}, base=lambda boot: ("kernel", "disk"), tree_disk=lambda disk, order: None)


def part(name, boot="systemd"):
    return {"name": name, "boot": boot}


@pytest.fixture
def start(tmp_path, monkeypatch):
    """start(*parts): a fleet of which one guest is at work at a time."""
    (tmp_path / "vm").mkdir()
    monkeypatch.setenv("BRIG_BUILD", str(tmp_path))
    monkeypatch.setattr(fleet, "at_once", lambda: 1)
    monkeypatch.setattr(machine, "processor", lambda kernel, kind: (kind.software, "played"))
    monkeypatch.setattr(machine, "command", lambda *_: [sys.executable, "-c", GUEST])
    started = []

    def begin(*parts, silence=600):
        started.append(fleet.Fleet(WORLD, parts, 1, silence, "test"))
        return started[-1]
    yield begin
    for one in started:
        one.close()


def booted(tmp_path):
    return sorted(path.name.removeprefix("words-") for path in (tmp_path / "vm").glob("words-*"))


def test_a_guest_boots_once_for_all_parts_of_its_boot(start, tmp_path):
    parts = [part("one"), part("other", "bare"), part("two"), part("three")]
    running = start(*parts)
    for one in parts:
        assert [word for word in running.words(one) if "part" in word] == [{"part": one["name"], "status": 0, "output": "1 passed"}]
    running.close()
    assert booted(tmp_path) == ["bare-1", "systemd-1"]


def test_a_guest_that_dies_is_told_with_its_test_and_the_other_parts_run_in_another(start, tmp_path):
    one, dies, last = parts = part("one"), part("dies"), part("last")
    running = start(*parts)
    assert list(running.words(one))
    with pytest.raises(machine.Lost, match="(?s)the guest ended with 1, .* in dies.py::test_it.*out of memory"):
        list(running.words(dies))
    assert list(running.words(last))[-1]["part"] == "last"
    assert booted(tmp_path) == ["systemd-1", "systemd-2"]


def test_a_guest_that_hangs_is_told_with_its_test(start):
    hangs, last = parts = part("hangs"), part("last")
    running = start(*parts, silence=2)
    with pytest.raises(machine.Lost, match="nothing came from the guest for 2 s, .* in hangs.py::test_it"):
        list(running.words(hangs))
    assert list(running.words(last))


def test_what_guests_do_when_the_session_ends_is_known_and_ends_with_it(start):
    hangs = part("hangs")
    running = start(hangs, part("last"))
    words = running.words(hangs)
    assert "up" in next(words) and "start" in next(words)
    assert running.doing() == {"systemd-1": "hangs.py::test_it"}
    running.close()
    assert running.doing() == {} and not any(worker.is_alive() for worker in running.workers)


def test_every_test_that_a_guest_is_asked_for_by_name_is_there():
    """Of a name that is none pytest runs nothing, and none of the other tests of that part."""
    named = sorted({word for part in (*guests.PARTS, *arm64.PARTS) for word in part["tests"] if "::" in word and not word.startswith("-")})
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only", "--tier", "all", *named], cwd=host.REPO, capture_output=True, text=True)
    assert named and done.returncode == 0, done.stdout + done.stderr
