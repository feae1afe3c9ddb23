"""What has to differ between two runs differs between two forks of one zygote; what they share is known."""
import pytest

from support import daemon as daemons
from support import tiers, warm
from warm_runs import PROFILES, folder, kept, sciences, talk # noqa: F401

RUNS = 3
DIFFERENT = {
    "random": "import random; print(random.random(), random.SystemRandom().random())",
    "random, asked for its state": "import random; print(hash(random.getstate()))",
    "secrets": "import secrets; print(secrets.token_hex())",
    "os.urandom": "import os; print(os.urandom(16), os.getrandom(16))",
    "uuid1": "import uuid; print(uuid.uuid1())",
    "uuid4": "import uuid; print(uuid.uuid4())",
    "names of temporary files": "import tempfile; print(tempfile.NamedTemporaryFile().name, tempfile.mkdtemp())",
    "ssl": "import ssl; print(ssl.RAND_bytes(16))",
    "a key of ssl": "import ssl; c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT); print(ssl.RAND_bytes(8), ssl.RAND_status())",
    "names of shared memory": "from multiprocessing import shared_memory as s; m = s.SharedMemory(create=True, size=1); print(m.name); m.close(); m.unlink()",
    "a key of multiprocessing": "import multiprocessing as m; print(bytes(m.current_process().authkey))",
    "random of a child": "import os, random\nif os.fork() == 0: print(random.random(), flush=True); os._exit(0)\nos.wait()\n",
    "sqlite": "import sqlite3; print(sqlite3.connect(':memory:').execute('select hex(randomblob(16))').fetchall())",
}
NUMPY = {
    "legacy global state": "import numpy; print(numpy.random.rand(2), numpy.random.get_state()[1][:4])",
    "default_rng": "import numpy; print(numpy.random.default_rng().random(2))",
    "RandomState": "import numpy; print(numpy.random.RandomState().rand(2))",
    "SeedSequence": "import numpy; print(numpy.random.SeedSequence().entropy)",
    "a sample of pandas": "import pandas; print(list(pandas.Series(range(1000)).sample(5)))",
    "scipy": "import scipy.stats; print(scipy.stats.norm.rvs(size=2))",
}


def outputs(talk, program, **keys):
    found = [talk.run(program, **keys) for _ in range(RUNS)]
    assert all(run.record["warm"] and run.status == 0 for run in found), found[0]
    return {run.stdout for run in found}


@pytest.mark.parametrize("name", tiers.few(DIFFERENT, "random", "a key of multiprocessing", "random of a child"))
def test_nothing_that_should_be_random_is_shared_by_runs(talk, name):
    assert len(outputs(talk, DIFFERENT[name])) == RUNS


@pytest.mark.parametrize("name", tiers.few(NUMPY, "legacy global state", "default_rng"))
def test_nothing_of_numpys_that_should_be_random_is_shared_by_runs(sciences, name):
    assert len(outputs(sciences, NUMPY[name], profile="data-science")) == RUNS


def test_nothing_is_shared_by_runs_of_a_zygote_that_has_imported_it_all(built):
    """What a module draws when it is imported it has drawn once for all forks."""
    names = ["multiprocessing", "multiprocessing.shared_memory", "random", "secrets", "sqlite3", "ssl", "tempfile", "uuid"]
    scratch, profiles = warm.scratch_profiles("basic", preload=names)
    with scratch, daemons.Daemon(PROFILES, env={"BRIG_PRESETS": str(profiles)}) as one, one.connect() as talk:
        warm.wait(talk)
        assert talk.run(f"import sys; print(set({names}) - set(sys.modules))").stdout == "set()\n"
        for name, program in DIFFERENT.items():
            assert len(outputs(talk, program)) == RUNS, name


def test_a_seed_gives_what_it_gives_in_a_cold_run(sciences):
    program = "import random, numpy\nrandom.seed(1); numpy.random.seed(1)\nprint(random.random(), numpy.random.rand(), numpy.random.default_rng(1).random())\n"
    assert outputs(sciences, program, profile="data-science") == {sciences.run(program, profile="data-science", cold=True).stdout}


def test_hashes_and_addresses_are_shared_by_the_runs_of_one_zygote_and_by_no_cold_ones(talk):
    """brig-security(7) says so; whoever refuses it says "warm": "never"."""
    program = "print(hash('a'), id(None), id(object))"
    assert len(outputs(talk, program)) == 1
    assert len({talk.run(program, cold=True).stdout for _ in range(RUNS)}) == RUNS
