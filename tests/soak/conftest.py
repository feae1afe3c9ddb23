"""A service whose cells have room for CPython's own tests."""
import pytest

from support import cpython, host


@pytest.fixture(scope="module")
def service(jail, tmp_path_factory):
    for need in ("tool:unshare", "tool:setsid", "tool:ip"):
        if host.lacks(need):
            pytest.skip(host.lacks(need))
    lack = cpython.lacks()
    if lack:
        pytest.skip(lack)
    with cpython.service(tmp_path_factory, kind="ready") as made:
        yield made
