"""The same programs where they belong: in a cell of brigd, whose pipe the report comes over."""
import json

import pytest

from support import client, host

from guest_judge import check_report, check_shape, is_refused
from guest_rows import ROWS

MAIN = "/workspace/main.py"


@pytest.fixture
def caller(service):
    with client.Client.at(service.path) as caller:
        yield caller


def start(caller, row, profile="basic", **keys):
    if row.imports != "*":
        keys["imports"] = [name.strip() for name in row.imports.split(",") if name.strip()]
    if row.stdin:
        keys["stdin"] = True
    run = caller.start(row.source, profile=profile, mode="report", args=list(row.args), **keys)
    if row.stdin:
        run.feed(row.stdin.encode())
    return run


@pytest.mark.parametrize("row", [row for row in ROWS if is_refused(row)], ids=[row.name for row in ROWS if is_refused(row)])
def test_a_program_that_is_no_text_reaches_no_cell(caller, row):
    with pytest.raises(client.Refused) as refused:
        start(caller, row)
    assert refused.value.field == "code"


@pytest.mark.parametrize("row", [row for row in ROWS if not is_refused(row)], ids=[row.name for row in ROWS if not is_refused(row)])
def test_a_program_in_a_cell_is_reported(caller, row):
    run = start(caller, row)
    ended = run.finish()
    text = bytes(run.text["result"])
    if row.no_report:
        assert text == b"", ended
    else:
        report = json.loads(text)
        check_shape(report)
        check_report(row, report, MAIN)
    if row.status is not None:
        assert ended.status == (row.status if row.status >= 0 else 128 - row.status), ended
    if row.out is not None:
        assert ended.stdout == row.out
    if row.err is not None:
        assert ended.stderr == row.err
    assert "/usr/lib/brig" not in ended.stderr


def report_of(run):
    ended = run.finish()
    assert ended.reason == "exited" and ended.status == 0, ended
    return json.loads(bytes(run.text["result"]))


IN_STRICT = "2 + 2", "thread", "import that is not listed", "fork reports"


@pytest.mark.parametrize("row", [row for row in ROWS if any(word in row.name for word in IN_STRICT) and not is_refused(row)], ids=lambda row: row.name)
def test_the_strictest_profile_is_no_hindrance(caller, row):
    run = start(caller, row, "strict")
    run.finish()
    check_report(row, json.loads(bytes(run.text["result"])), MAIN)


def test_a_program_is_checked_in_a_cell_by_the_lists_of_its_profile(caller):
    source = "import os, math\nos.system('x')\n1 / 0\n"
    report = report_of(caller.start(source, profile="basic", mode="check"))
    assert report["valid"] is True and report["errors"] == [] and [row["line"] for row in report["warnings"]] == [1, 2]
    report = report_of(caller.start(source, profile="basic", mode="check", imports=["os"]))
    assert [row["message"] for row in report["errors"]] == ["Import 'math' is not allowed"]


@pytest.mark.parametrize("source", ["f" + "()" * 45_000, pytest.param("a\n" * 50_000, marks=pytest.mark.nightly)], ids=["calls", "statements"])
def test_a_bomb_is_told_from_inside_the_limits_of_a_cell(caller, source):
    report = report_of(caller.start(source, profile="basic", mode="check"))
    assert report["valid"] is (source[0] == "a")


def test_numbers_of_numpy_and_pandas_are_numbers(caller):
    """Row A42."""
    lack = host.lacks("rootfs:data-science")
    if lack:
        pytest.skip(lack)
    source = """import numpy as np, pandas as pd
d = pd.DataFrame({"a": [1, 2]})
[np.mean([1, 2, 3, 4, 5]), np.int32(4), np.bool_(True), np.array(7), np.nan, np.int64(2**60), {np.int64(1): np.float64(1.5)}, d["a"].sum(), d["a"].mean(),
 np.array([1, 2]), d, np.complex128(1j)]"""
    assert report_of(caller.start(source, profile="data-science", mode="report"))["result"] == [
        3.0, 4, True, 7, "NaN", str(2**60), {"1": 1.5}, 3, 1.5, "array([1, 2])", "   a\n0  1\n1  2", "1j"]
