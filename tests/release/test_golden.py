"""What brig prints about itself, whole. A wanted change: run the command that the failure names, and read the diff."""
import difflib
import pathlib
import subprocess

import pytest

from support import brig

HERE = pathlib.Path(__file__).parent
SHIPPED = brig.environment({"BRIG_PROFILES": None, "BRIG_PRESETS": None}) # not those that a session has changed
ROWS = [
    ("explain-basic.txt", ["explain", "--all", "basic"], "explain --all prints every layer of basic"),
    ("explain-strict.txt", ["explain", "strict", "--all"], "explain --all prints every layer of strict"),
    ("explain-short.txt", ["explain"], "explain alone fits on a screen"),
    ("profile-schema.json", ["profile", "schema"], "the schema of a profile has every setting"),
]


@pytest.mark.parametrize("file, words", [r[:2] for r in ROWS], ids=[r[2] for r in ROWS])
def test_golden(file, words):
    run = subprocess.run([brig.binary(), *words], capture_output=True, text=True, env=SHIPPED)
    assert (run.returncode, run.stderr) == (0, "")
    want = (HERE / file).read_text()
    diff = "".join(difflib.unified_diff(want.splitlines(True), run.stdout.splitlines(True), file, "now"))
    assert not diff, f"build/bin/brig {' '.join(words)} > tests/release/test_golden.py/{file}\n{diff}"


@pytest.mark.parametrize("words", [["basic", "--json"], ["--json", "basic"], ["--json"]], ids=["behind the profile", "before it", "without one: basic"])
def test_explain_takes_its_option_anywhere(words):
    run = subprocess.run([brig.binary(), "explain", *words], capture_output=True, text=True, env=SHIPPED)
    assert (run.returncode, run.stdout[:1], run.stderr) == (0, "{", "")


def test_explain_json_says_the_same_limits_as_text():
    import json
    j = json.loads(subprocess.run([brig.binary(), "explain", "--json", "basic"], capture_output=True, text=True, env=SHIPPED).stdout)
    assert j["limits"]["memory_bytes"] == 256 << 20 and j["ceilings"]["pids"] == 256
    assert [m["path"] for m in j["mounts"]][:2] == ["/", "/dev/null"] and "errno ENOSYS" in j["system_calls"]
