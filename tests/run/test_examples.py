"""The first thing that anybody runs, as whoever runs these tests."""
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HELLO = (ROOT / "examples" / "hello.py").read_text()


def test_hello_says_what_a_jail_is(run_brig):
    run = run_brig(program=HELLO)
    assert run.status == 0 and run.out.startswith("Hello from user@brig") and "I cannot:" in run.out, str(run)
