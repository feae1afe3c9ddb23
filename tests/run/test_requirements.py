"""docs/requirements.md says what was asked for and what shows it."""
import subprocess

from support import host


def test_every_row_has_a_test_or_says_what_it_waits_for_and_the_page_is_up_to_date():
    done = subprocess.run([host.PYTHON, host.REPO / "tools" / "requirements.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
