"""All files of the runner but guest.py are executed in one namespace, and a zygote has most of them in it at once."""
import ast
import collections
import pathlib

from support import host

FOLDER = host.REPO / "jail/guest"
ALONE = "guest", "pack", "lines"
MEANT = {"STOPS"} # of value.py, to which context.py adds its own


def names_of(statement):
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return [statement.name]
    if isinstance(statement, ast.Assign):
        return [node.id for target in statement.targets for node in ast.walk(target) if isinstance(node, ast.Name)]
    return []


def test_no_file_of_the_runner_gives_another_meaning_to_a_name_of_another():
    files = collections.defaultdict(set)
    for path in sorted(FOLDER.glob("*.py")):
        if path.stem not in ALONE:
            for name in (name for statement in ast.parse(path.read_text()).body for name in names_of(statement)):
                files[name].add(path.stem)
    assert files["run_session"] == {"session"}
    assert not {name: places for name, places in files.items() if len(places) > 1 and name not in MEANT}
