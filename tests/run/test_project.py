"""A program that lies in a directory which is shown runs there, as `python3 proj/main.py` would: beside its modules and its files."""
import json

import pytest

from support import brig as tool
from support import host

MAIN = """
import json, os, sys
from inner import value
import inner.deep
print(json.dumps([value, inner.deep.x, sys.argv, __file__, sys.path[0], os.getcwd(), open(os.path.dirname(__file__) + "/data.txt").read(), __name__]))
"""
BOTH = pytest.mark.parametrize("json_record", [False, True], ids=["by the interpreter", "by the runner"])


@pytest.fixture
def proj(tmp_path):
    folder = tmp_path / "proj"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner/__init__.py").write_text("value = 7\n")
    (folder / "inner/deep.py").write_text("x = 8\n")
    (folder / "data.txt").write_text("data")
    (folder / "main.py").write_text(MAIN)
    tmp_path.chmod(0o755)
    return folder


SAYS = [7, 8, ["proj/main.py", "a", "b"], "/workspace/proj/main.py", "/workspace/proj", "/workspace", "data", "__main__"]


@BOTH
@pytest.mark.parametrize("options", [(), ("--cold",)], ids=["as it comes", "cold"])
def test_a_program_in_a_directory_that_is_shown_finds_its_neighbours(jail, proj, options, json_record):
    run = tool.run(*options, "--ro", proj, file=proj / "main.py", args=["a", "b"], json_record=json_record)
    assert (json.loads(run.out), run.stderr) == (SAYS, ""), str(run)


@BOTH
def test_a_directory_is_shown_and_its_program_run(jail, proj, json_record):
    run = tool.run(file=proj, args=["a", "b"], json_record=json_record)
    assert (json.loads(run.out), run.stderr) == (SAYS, ""), str(run)


def test_what_python_would_run_goes_first(jail, proj):
    (proj / "__main__.py").write_text("print(__file__)")
    assert tool.run(file=proj, json_record=False).stdout == "/workspace/proj/__main__.py\n"


@pytest.mark.parametrize("words, where", [(("--ro", ".", "main.py"), "proj/"), (("--ro", "..", "main.py"), "TOP/proj/"), (("--ro", "../proj", "./inner/../main.py"), "proj/"),
                                          (("--ro", "inner", "--ro", ".", "main.py"), "proj/"), (("--ro", ".", "link.py"), "proj/")], ids=lambda words: " ".join(words))
def test_it_is_found_however_it_is_named(jail, proj, words, where):
    (proj / "link.py").symlink_to("main.py")
    run = tool.run(*words[:-1], file=words[-1], json_record=False, popen={"cwd": proj})
    assert json.loads(run.stdout)[2] == [where.replace("TOP", proj.parent.name) + "main.py"], str(run)


@BOTH
def test_a_program_elsewhere_is_alone(jail, proj, tmp_path, json_record):
    (tmp_path / "other.py").write_text("import sys\nprint(__file__, '/workspace/proj' in sys.path)\nimport inner")
    run = tool.run("--ro", proj, file=tmp_path / "other.py", json_record=json_record)
    assert run.out == "/workspace/main.py False\n" and run.status == 1, str(run)


def test_errors_name_the_file_as_it_is_called_inside(jail, proj):
    (proj / "main.py").write_text("def f():\n    1 / 0\nf()\n")
    run = tool.run(file=proj, json_record=False)
    assert '  File "/workspace/proj/main.py", line 2, in f' in run.stderr and run.status == 1, str(run)


def test_nothing_can_be_written_there(jail, proj):
    (proj / "main.py").write_text("open(__file__, 'w')")
    assert "Read-only file system" in tool.run(file=proj, json_record=False).stderr


@pytest.mark.parametrize("words, says", [
    (("EMPTY",), "is a directory without __main__.py or main.py; name a Python file"),
    (("--ro", "NONE", "FILE"), "No such file"), (("--ro", "/dev/null", "FILE"), "--ro /dev/null: is neither a directory nor a regular file"),
    (("--ro", "/proc/version", "FILE"), "--ro /proc/version: holds what the kernel tells of the host, no files"),
    (("--ro", "FILE", "--ro", "FILE", "FILE"), "two of them would both be /workspace/file.py"),
    (("--ro", "MAIN", "FILE"), "the program itself is /workspace/main.py"),
])
def test_what_cannot_be_run_is_told_in_a_sentence(tmp_path, words, says):
    places = {"EMPTY": tmp_path / "empty", "FILE": tmp_path / "file.py", "MAIN": tmp_path / "main.py", "NONE": tmp_path / "none"}
    places["EMPTY"].mkdir()
    places["FILE"].write_text("pass")
    places["MAIN"].write_text("pass")
    words = [str(places.get(word, word)) for word in words]
    run = tool.run(*words[:-1], file=words[-1], json_record=False)
    assert (run.status, run.stdout) == (125, "") and says in run.stderr and run.stderr.count("\n") == 1, str(run)


def test_a_file_is_shown_by_its_name(jail, tmp_path):
    """A table for a program, the program itself too, and a link to it by the name of what it leads to."""
    (tmp_path / "data.csv").write_text("1,2\n")
    (tmp_path / "link").symlink_to("data.csv")
    (tmp_path / "show.py").write_text("import os\nprint(sorted(os.listdir()), open('data.csv').read(), end='')")
    tmp_path.chmod(0o755)
    run = tool.run("--ro", tmp_path / "link", "--ro", tmp_path / "show.py", file=tmp_path / "show.py", json_record=False)
    assert run.stdout == "['data.csv', 'main.py', 'show.py'] 1,2\n", str(run)


def test_the_example_is_what_it_says(jail):
    assert tool.run(file=host.REPO / "examples/project", json_record=False).stdout == "hello from /workspace/project\n"
