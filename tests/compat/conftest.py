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
    folder = tmp_path_factory.mktemp("cpython")
    for place in (folder, *folder.parents[:2]):
        place.chmod(0o755) # the door has an account of its own
    with cpython.service(folder, kind="ready") as made:
        yield made
