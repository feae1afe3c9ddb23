"""The same programs where they belong: in a cell of brigd, whose pipe the report comes over."""
import json

import pytest

from support import client, daemon

from guest_judge import check_report, check_shape
from guest_rows import ROWS

MAIN = "/workspace/main.py"


@pytest.fixture(scope="module")
def service(jail):
    lack = daemon.lacks_binaries("brigd", "keeper")
    if lack:
        pytest.fail(lack)
    with daemon.Daemon(None) as service:
        yield service


@pytest.fixture
def caller(service):
    with client.Client.at(service.path) as caller:
        yield caller


def start(caller, row, **keys):
    if row.imports != "*":
        keys["imports"] = [name.strip() for name in row.imports.split(",") if name.strip()]
    if row.stdin:
        keys["stdin"] = True
    run = caller.start(row.source, profile="basic", mode="report", args=list(row.args), **keys)
    if row.stdin:
        run.feed(row.stdin.encode())
    return run


def is_refused(row):
    """What never gets as far as a cell: no text, or none at all."""
    source = row.source if isinstance(row.source, bytes) else row.source.encode()
    try:
        return not source.decode() or b"\0" in source
    except UnicodeDecodeError:
        return True


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
