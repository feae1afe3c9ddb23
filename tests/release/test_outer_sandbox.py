"""The guide on running brig inside of another sandbox says what the tests try, and what they do not."""
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/vm"))
import guests

GUIDE = (ROOT / "docs/guide/containers-and-ci.md").read_text()
SECTION = re.search(r"^## Virtual machines and gVisor$(.*?)(?=^## |\Z)", GUIDE, re.M | re.S).group(1)


@pytest.mark.requirement("A102")
def test_the_guide_says_that_another_sandbox_is_optional_and_which_were_tried():
    assert "optional" in SECTION and "gVisor was not tried" in SECTION and "nothing to do" in SECTION and "brig doctor" in SECTION


@pytest.mark.requirement("A102")
def test_jails_are_run_in_guests_by_root_and_by_plain_users_and_attacked_there():
    attacked = {part["user"] for part in guests.PARTS if any("tests/attack" in word for word in part["tests"])}
    assert attacked == {None}, "root runs the attacks, in the jails of plain users as well"
    assert {part["user"] for part in guests.PARTS if guests.HELLO in part["tests"]} == {None, "plain", "bare"}
