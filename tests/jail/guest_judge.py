"""Compares a report with what a row of guest_rows.py expects."""
KEYS = ["result", "result_repr", "error", "variables", "exit_code", "security_event", "security_warnings"]
ERROR_KEYS = ["type", "message", "traceback", "line", "offset", "text"]


def depth_of(value):
    return 1 + depth_of(value[0]) if isinstance(value, list) else 0


def check_shape(report):
    assert [key for key in report if key != "left_out"] == KEYS # which is there where a result is cut
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
        "left_out": lambda sentences: report["left_out"] == sentences,
        "count": lambda pair: len(report[pair[0]]) == pair[1],
        "depth": lambda most: depth_of(report["result"]) == most,
    }
    for word, value in expect.items():
        assert words[word](value), (word, report)


def is_refused(row):
    """What never gets as far as a cell: what is no text, unless it names its coding."""
    source = row.source if isinstance(row.source, bytes) else row.source.encode()
    try:
        return b"\0" in source.decode().encode()
    except UnicodeDecodeError:
        return b"coding:" not in source
