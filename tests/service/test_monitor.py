"""The monitor believes nothing: a server that has gone mad tells it what cannot be, one lie a test (monitor_lies.c)."""
import re

import pytest

import lies

LIES = [line.split("\t") for line in lies.listed("monitor_lies")] # what becomes of it, the lie


def tell(lie):
    """Lines of what became of it, and the monitor's own words."""
    done = lies.tell("monitor_lies", lie)
    return done.stdout.splitlines(), done.stderr


@pytest.fixture(scope="module")
def liar(built):
    with lies.leaving_nothing("monitor_lies"):
        yield tell


def test_every_lie_has_a_row(liar):
    assert {fate for fate, _ in LIES} == {"ends", "refused", "harmless"} and len(LIES) > 90


@pytest.mark.row("I1")
@pytest.mark.parametrize("lie", [lie for fate, lie in LIES if fate == "ends"])
def test_a_word_that_no_server_would_say_ends_the_monitor(liar, lie):
    lines, said = liar(lie)
    assert not {"started", "lives", "not sealed"} & set(lines), lines
    assert re.fullmatch(r"ended \d+", lines[-1]), lines
    assert said.strip() and len(said.strip().splitlines()) == 1, f"one sentence tells why: {said!r}"


@pytest.mark.row("I2")
@pytest.mark.parametrize("lie", [lie for fate, lie in LIES if fate == "refused"])
def test_a_run_that_cannot_be_starts_nothing(liar, lie):
    """It is refused on its own socket and the monitor lives; or the monitor ends: both are told by its header."""
    lines, said = liar(lie)
    assert not {"started", "not sealed", "silent"} & set(lines), f"{lines}\n{said}"
    assert lines[0].startswith("refused ") or lines[0] == "hung up", f"{lines}\n{said}"
    assert lines[-2:] == ["lives", "ended 0"] or (len(lines) < 3 and said), f"{lines}\n{said}"


@pytest.mark.control("I2")
@pytest.mark.parametrize("lie", [lie for fate, lie in LIES if fate == "harmless"])
def test_control_what_is_no_lie_runs(liar, lie):
    """Or is refused in order, where the monitor is stricter than it must be."""
    lines, said = liar(lie)
    assert lines[-2:] == ["lives", "ended 0"], f"{lines}\n{said}"
    assert "started" in lines[0] or lies_about_something(lie), f"{lines}\n{said}"


def lies_about_something(lie):
    return lie != "run: the truth"
