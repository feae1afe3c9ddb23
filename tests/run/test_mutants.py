"""tools/mutants.py: what its rows say of the tree is so. That each mutant is caught takes minutes: ./dev mutants."""
import pathlib
import subprocess
import sys

import pytest

from support import host

sys.path.append(str(host.REPO / "tools"))
import mutants

EACH = [pytest.param(mutant, id=mutant.name) for mutant in mutants.MUTANTS]


def test_there_are_at_least_twenty_and_each_has_a_name_of_its_own():
    names = {mutant.name for mutant in mutants.MUTANTS}
    assert len(names) == len(mutants.MUTANTS) >= 20


@pytest.mark.parametrize("mutant", EACH)
def test_the_text_of_a_mutant_is_in_its_file_once_and_its_tests_are_there(mutant):
    assert mutants.check_rows([mutant]) == []
    assert (host.REPO / mutant.tests[0]).is_file() and mutant.old != mutant.new


@pytest.mark.parametrize("text, times", [("", 0), ("guard();\nguard();\n", 2)])
def test_a_text_that_is_not_there_once_is_refused(tmp_path, text, times):
    (tmp_path / "a.c").write_text(text)
    mutant = mutants.Mutant("no-guard", "a.c", "guard();", "", "nothing is guarded", [])
    assert mutants.check_rows([mutant], tmp_path) == [f"no-guard: its text is {times} times in a.c"]


def test_a_name_that_is_none_is_refused_with_the_list():
    done = subprocess.run([sys.executable, host.REPO / "tools" / "mutants.py", "nonesuch"], capture_output=True, text=True)
    assert done.returncode == 1 and '"nonesuch"' in done.stderr and mutants.MUTANTS[0].name in done.stderr


def test_the_page_has_a_row_for_each_of_them():
    page = (pathlib.Path(host.REPO) / "docs" / "mutants.md").read_text()
    assert [line.split(" | ")[0].removeprefix("| ") for line in page.splitlines() if " | `" in line] == [mutant.name for mutant in mutants.MUTANTS]
