"""What the runner reports of a program, and that nothing else is different from `python3 -I main.py`."""
import json

import pytest

from guest_rows import ROWS

KEYS = ["result", "result_repr", "error", "variables", "exit_code", "security_event", "security_warnings"]
ERROR_KEYS = ["type", "message", "traceback", "line", "offset", "text"]


def depth_of(value):
    return 1 + depth_of(value[0]) if isinstance(value, list) else 0


def check_shape(report):
    assert list(report) == KEYS
    assert report["error"] is None or list(report["error"]) == ERROR_KEYS
    assert all(isinstance(name, str) for name in report["variables"] + report["security_warnings"])


def check_report(row, report, main):
    """What a row expects, by its words."""
    expect = dict(row.expect)
    failure = report["error"] or {}
    for key in set(expect) & {*KEYS} - {"error"}:
        assert report[key] == expect.pop(key), key
    if "error" in expect:
        wanted = expect.pop("error")
        assert wanted if failure else not wanted, failure
        assert {key: failure[key] for key in wanted or ()} == (wanted or {})
    words = {
        "result_starts": lambda text: report["result"].startswith(text),
        "result_length": lambda most: len(report["result"]) <= most,
        "result_type": lambda kind: isinstance(report["result"], kind),
        "result_repr_has": lambda text: text in report["result_repr"],
        "message_length": lambda most: len(failure["message"]) <= most,
        "traceback_has": lambda text: text in failure["traceback"],
        "traceback_is": lambda text: failure["traceback"] == text.replace("MAIN", str(main)),
        "count": lambda pair: len(report[pair[0]]) == pair[1],
        "depth": lambda most: depth_of(report["result"]) == most,
    }
    for word, value in expect.items():
        assert words[word](value), (word, report)


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_a_program_is_run_and_reported(guest, row):
    done = guest(row.source, imports=row.imports, args=row.args, stdin=row.stdin)
    if row.expect.pop("no_report", False):
        assert done.text == b""
    else:
        assert len(done.text) <= 1 << 20
        check_shape(done.report)
        check_report(row, done.report, guest.main)
        if row.status is None and done.report["exit_code"] != 130:
            assert done.status == done.report["exit_code"] or done.status == 120
    if row.status is not None:
        assert done.status == row.status, done.err
    if row.out is not None:
        assert done.out == row.out
    if row.err is not None:
        assert done.err == row.err
    assert "/usr/lib/brig" not in done.err
    if row.same:
        plain = guest.plain(row.source, row.args, row.stdin)
        assert (done.status, done.out, done.err) == (plain.status, plain.out, plain.err)
