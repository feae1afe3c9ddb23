"""All of CPython's own tests, outside, warm and cold: figures and differences go to docs/compatibility-run.log, a block for each group.

Takes an hour. Each module's result is kept in build/compat as it comes; with BRIG_LONG_RESUME=1 those that are there do not run again.
"""
import concurrent.futures
import os

import pytest

from support import cpython, host, longlog

AT_ONCE = 2 * (os.cpu_count() or 1) # many of them wait
LOG = host.REPO / "docs" / "compatibility-run.log"
KEPT = host.build_dir() / "compat"
NICE = ("nice", "-n", "10") # what a jail does counts here, and nobody waits
pytestmark = pytest.mark.long(seconds=4 * 3600)


@pytest.fixture(scope="module")
def service(jail, tmp_path_factory):
    lack = cpython.lacks()
    if lack:
        pytest.skip(lack)
    with cpython.service(tmp_path_factory, before=NICE) as made:
        yield made


def measure_all(service, modules, kept):
    known = cpython.stored(kept) if os.environ.get("BRIG_LONG_RESUME") else {}
    if not known:
        kept.parent.mkdir(exist_ok=True)
        kept.write_text("")

    def one(module):
        found = cpython.measure(service, module, before=NICE)
        cpython.store(found, kept)
        return found
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        done = list(pool.map(one, [module for module in modules if module not in known]))
    return [found for module, found in known.items() if module in modules] + done


@pytest.mark.parametrize("group", ["jail", "loopback", "pure", "other"])
def test_a_jail_is_no_other_place(service, group):
    measured = measure_all(service, list(cpython.groups()[group]), KEPT / f"{group}.jsonl")
    longlog.write(group, list(cpython.log_lines(measured)), LOG)
    cold = [one.module for one in measured if one.outcomes["warm"].warm is not True]
    assert not cold, f"the zygote did not fork {cold}"
    unknown = [line for one in measured for way, lines in one.unknown().items() for line in (f"{way} {line}" for line in lines)]
    assert not unknown, "\n".join(unknown)
