"""All files of the runner but guest.py are executed in one namespace, and a zygote has most of them in it at once."""
import ast
import collections

from support import host

FOLDER = host.REPO / "jail/guest"
ALONE = "guest", "pack", "lines"
MEANT = {"STOPS"} # of value.py, to which context.py adds its own


def meanings(statement, file):
    """(name, what it stands for)"""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return [(statement.name, file)]
    if isinstance(statement, ast.Assign):
        return [(node.id, file) for target in statement.targets for node in ast.walk(target) if isinstance(node, ast.Name)]
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return [(each.asname or each.name, f"{getattr(statement, 'module', '')}.{each.name}") for each in statement.names]
    return []


def test_no_file_of_the_runner_gives_another_meaning_to_a_name_of_another():
    found = collections.defaultdict(set)
    for path in sorted(FOLDER.glob("*.py")):
        if path.stem not in ALONE:
            for statement in ast.parse(path.read_text()).body:
                for name, what in meanings(statement, path.stem):
                    found[name].add(what)
    assert found["run_session"] == {"session"} and found["setsid"] == {"posix.setsid"}
    assert not {name: whats for name, whats in found.items() if len(whats) > 1 and name not in MEANT}
