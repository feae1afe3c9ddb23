"""The project's pytest plugin: C unit tests as items, fixtures, tiers, and what may never be skipped."""
import fcntl
import fnmatch
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import uuid

import pytest

from support import brig as brig_tool
from support import host, matrix, neighbours, runs, tiers, users

REPO = pathlib.Path(__file__).resolve().parent.parent
MUST_RUN = REPO / "tests" / "must-run"


# --- tiers and workers --------------------------------------------------------------------------------

def pytest_addoption(parser):
    parser.addoption("--tier", default=tiers.FAST, help=f"which tests: {tiers.FAST} (default), {', '.join(tiers.TIERS)}, several with commas, or all")
    parser.addoption("--group", default="", help=f"which of the tier nightly: {', '.join(tiers.GROUPS)}, several with commas; -NAME: all but that")


def pytest_configure(config):
    unknown = {name for name in tiers.wanted(config)} - {tiers.FAST, *tiers.TIERS}
    if unknown:
        raise pytest.UsageError(f"--tier: there is no {', '.join(sorted(unknown))}; there are: {tiers.FAST}, {', '.join(tiers.TIERS)}, all")
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN: # a shell's "&": brig would keep it ignored, and the tests of Ctrl-C wait in vain
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name, meaning in tiers.TIERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}; --tier {name}")
    config.addinivalue_line("markers", "alone(why): looks at what the whole machine has, so no other test may run beside it")
    config.addinivalue_line("markers", "diagonal(name): one value of this parameter for each of the others is fast, all are in nightly")
    config.addinivalue_line("markers", "sample(number, names...): so many rows, evenly apart, and those with these names are fast, all are in nightly")
    config.addinivalue_line("markers", "private(why): its subject is a brigd of one's own, also where runs are warm")
    config.addinivalue_line("markers", "row(id): the row of the escape matrix that this test carries")
    config.addinivalue_line("markers", "control(id): the same attack where there is no jail, which must succeed")
    config.pluginmanager.register(Runs(config), "runs")
    config.pluginmanager.register(matrix.Matrix(), "escape-matrix")
    if is_worker(config):
        config.option.basetemp = "/tmp/tests" # its own /tmp; paths of sockets must be short
    else:
        config.pluginmanager.register(MustRun(config), "must-run")
        config.pluginmanager.register(tiers.Stopwatch(config), "stopwatch")
        config.pluginmanager.register(neighbours.Table(), "neighbours")
        config.pluginmanager.register(Failed(config), "failed")
        if hasattr(config.option, "testrunuid"): # of pytest-xdist
            config.option.testrunuid = config.option.testrunuid or uuid.uuid4().hex
            config.add_cleanup(lambda: shutil.rmtree(tap_folder(config.option.testrunuid), ignore_errors=True))


def is_worker(config):
    """Whether another process, which reports, runs this session for pytest-xdist."""
    return hasattr(config, "workerinput")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Leaves out the tiers that were not asked for."""
    tiers.mark_diagonals(items)
    tiers.mark_samples(items)
    wanted, out = tiers.wanted(config), []
    everything, items[:] = list(items), []
    for item in everything:
        (items if tiers.of(item) in wanted and tiers.in_groups(item, config.option.group) else out).append(item)
    if out:
        config.hook.pytest_deselected(items=out)
    if is_worker(config):
        config.workeroutput["left_out"] = [item.nodeid for item in out]
        for item in items:
            if item.get_closest_marker("alone"):
                item._nodeid += tiers.ALONE


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from support import schedule # pylint: disable=import-outside-toplevel # only here is there an xdist
    return schedule.Schedule(config, log)


# --- no test may hang -------------------------------------------------------------------------------

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    """A test that still runs after its limit fails where it stands."""
    seconds = tiers.limit(item)

    def too_long(*_):
        raise TimeoutError(f"still running after {seconds} s")
    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(seconds)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


# --- C unit tests: one item per TAP line ------------------------------------------------------------

def pytest_collect_file(parent, file_path):
    if file_path.suffix == ".c" and file_path.name.startswith("test_") and file_path.parent.name == "unit":
        return TapFile.from_parent(parent, path=file_path)
    return None


class TapFile(pytest.File):
    """Runs the program of one tests/unit/test_*.c and makes a test of every promise it prints."""

    def collect(self):
        program = host.build_dir() / "tests" / self.path.stem
        if not program.exists():
            yield TapItem.from_parent(self, name="is built", bad=f"{program} is missing: ./dev build")
            return
        done = self.once(program)
        if done is None:
            yield TapItem.from_parent(self, name="ends by itself", bad=f"{program}: still running after 60 s")
            return
        status, stdout, stderr = done
        seen = set()
        for ok, sentence, notes in parse_tap(stdout):
            name, again = sentence, 2
            while name in seen:
                name, again = f"{sentence} ({again})", again + 1
            seen.add(name)
            yield TapItem.from_parent(self, name=name, bad=None if ok else f"not ok - {sentence}\n{notes}")
        plan = f"1..{len(seen)}" in stdout.splitlines()
        failed = "\nnot ok " in "\n" + stdout
        if not plan or status != (1 if failed else 0):
            yield TapItem.from_parent(self, name="runs to its end", bad=(
                f"{program}: status {status} after {len(seen)} promises, plan line "
                f"{'found' if plan else 'missing'}\n{stdout[-500:]}{stderr[-3000:]}"))


    def once(self, program):
        """(status, output, errors) of a program, None if it does not end: all workers of a session collect, and the first one runs it."""
        if not is_worker(self.config):
            return run_tap(program)
        folder = tap_folder(self.config.workerinput["testrunuid"])
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / program.name, "a+", encoding="utf-8") as shared:
            fcntl.flock(shared, fcntl.LOCK_EX)
            shared.seek(0)
            known = shared.read()
            if not known:
                known = json.dumps(run_tap(program))
                shared.write(known)
        return json.loads(known)


def tap_folder(session):
    return host.build_dir() / "tap" / session


def run_tap(program):
    try:
        done = subprocess.run([program], capture_output=True, text=True, errors="replace", timeout=60)
    except subprocess.TimeoutExpired:
        return None
    return done.returncode, done.stdout, done.stderr


def parse_tap(text):
    """Yields (ok, sentence, the "# ..." lines after it) for every TAP line."""
    rows = []
    for line in text.splitlines():
        head, dash, sentence = line.partition(" - ")
        if dash and (head.startswith("ok ") or head.startswith("not ok ")):
            rows.append([head.startswith("ok "), sentence, ""])
        elif rows and line.startswith("#"):
            rows[-1][2] += line + "\n"
    return rows


class TapItem(pytest.Item):
    def __init__(self, *, bad, **kw):
        super().__init__(**kw)
        self.bad = bad

    def runtest(self):
        if self.bad:
            raise TapFailure(self.bad)

    def repr_failure(self, excinfo, style=None):
        return str(excinfo.value) if excinfo.errisinstance(TapFailure) else super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.path, None, f"{self.path.stem}: {self.name}"


class TapFailure(Exception):
    pass


# --- what failed --------------------------------------------------------------------------------------

class Failed:
    """Names each test that fails at once, and adds it to the file that BRIG_TEST_FAILED names, for `./dev again`; a session that failed for another
    reason adds that instead, which is no test: it is not run away."""

    def __init__(self, config):
        self.config, self.names, self.is_good = config, {}, True

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.names[tiers.repeatable(report.nodeid)] = True
            self.config.pluginmanager.getplugin("terminalreporter").write_line(f"\nFAILED {tiers.plain(report.nodeid)}", red=True) # not only at the end

    def pytest_collectreport(self, report):
        self.is_good = self.is_good and not report.failed

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus):
        path, plugin = os.environ.get("BRIG_TEST_FAILED"), self.config.pluginmanager.getplugin
        if path and exitstatus != pytest.ExitCode.OK:
            is_good = self.is_good and exitstatus == pytest.ExitCode.TESTS_FAILED and not plugin("must-run").broken and not plugin("runs").wrong
            names = self.names if is_good else [f"the session ended with status {int(exitstatus)}"]
            with open(path, "a") as file:
                file.writelines(f"{name}\n" for name in names)


# --- what may never be skipped ------------------------------------------------------------------------

class MustRun:
    """tests/must-run: sections "[what the machine has]" of patterns; each must match a test, and none that it matches may be skipped."""

    def __init__(self, config):
        self.config = config
        self.ran, self.left_out, self.skipped, self.broken = set(), set(), {}, []

    def pytest_runtest_logreport(self, report):
        name = tiers.plain(report.nodeid)
        if report.skipped and not hasattr(report, "wasxfail"): # what is known to fail did run
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            self.skipped[name] = reason
        elif report.when == "call" or report.failed:
            self.ran.add(name)

    def pytest_deselected(self, items):
        """Of another tier, whose session looks at it."""
        self.left_out |= {item.nodeid for item in items}

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        self.left_out |= set(getattr(node, "workeroutput", {}).get("left_out", []))

    def is_whole(self):
        option = self.config.option
        if option.markexpr or option.keyword or option.collectonly or getattr(option, "deselect", None):
            return False
        return all(pathlib.Path(arg).resolve() in (REPO, REPO / "tests") for arg in self.config.args)

    def pytest_sessionfinish(self, session):
        if not self.is_whole() or session.shouldstop or session.shouldfail:
            return
        patterns, excepted = must_run_patterns(MUST_RUN.read_text())
        for pattern in patterns:
            for name, reason in self.skipped.items():
                if not any(fnmatch.fnmatchcase(name, other) for other in excepted) and fnmatch.fnmatchcase(name, pattern):
                    self.broken.append(f"{name} may not be skipped on this kind of machine, but was: {reason}")
            if not any(fnmatch.fnmatchcase(name, pattern) for name in self.ran | self.left_out | set(self.skipped)):
                self.broken.append(f"{pattern}: there is no such test, but tests/must-run demands it")
        if self.broken and session.exitstatus == 0:
            session.exitstatus = 1

    def pytest_terminal_summary(self, terminalreporter):
        for line in self.broken:
            terminalreporter.write_line(f"MUST RUN: {line}", red=True)


def must_run_patterns(text):
    """The patterns of every section whose needs this machine meets, and those behind "except"."""
    wanted, patterns, excepted = True, [], []
    for line in text.splitlines():
        line = line.split("#", 1)[0].strip()
        if line.startswith("["):
            wanted = all(host.lacks(need) is None for need in line.strip("[]").split())
        elif line and wanted:
            # "[" opens a class in fnmatch, and every parametrised test has one in its name
            kind = excepted if line.startswith("except ") else patterns
            kind.append(line.removeprefix("except ").replace("[", "[[]"))
    return patterns, excepted


# --- warm and cold runs ---------------------------------------------------------------------------------

class Runs:
    """$BRIG_TEST_RUNS: how the runs of this session begin, and how many did (support/runs.py)."""

    def __init__(self, config):
        self.config, self.wrong, self.count = config, None, runs.SESSION.count
        self.makes_runs = not config.option.collectonly and (is_worker(config) or not getattr(config.option, "tx", None))
        if self.makes_runs:
            runs.SESSION.begin()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item):
        mark = item.get_closest_marker("private")
        assert not mark or mark.args, f"{item.nodeid}: @private says no reason"
        runs.SESSION.private = mark and mark.args[0]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        self.count.update(getattr(node, "workeroutput", {}).get("runs", {}))

    def pytest_sessionfinish(self, session):
        if is_worker(self.config):
            self.config.workeroutput["runs"] = dict(self.count)
            return
        self.wrong = runs.SESSION.wrong()
        if self.wrong and session.exitstatus == 0:
            session.exitstatus = 1

    def pytest_terminal_summary(self, terminalreporter):
        if self.count:
            terminalreporter.write_line(f"runs: {self.count['warm']} warm, {self.count['cold']} cold ({runs.mode() or 'as the profiles say'})")
        if self.wrong:
            terminalreporter.write_line(f"RUNS: {self.wrong}", red=True)

    def pytest_unconfigure(self):
        if self.makes_runs:
            runs.SESSION.end()


# --- fixtures -------------------------------------------------------------------------------------------

def require(*needs):
    for need in needs:
        lack = host.lacks(need)
        if lack:
            pytest.skip(lack)


@pytest.fixture(scope="session")
def needs_root():
    require("root")


@pytest.fixture(scope="session")
def needs_cgroup():
    """needs_cgroup("memory") skips when this host has no such controller."""
    return lambda *names: require(*[f"cgroup:{name}" for name in names])


@pytest.fixture(scope="session")
def needs_rootfs():
    require("rootfs:basic")


@pytest.fixture(scope="session")
def jail(needs_root, needs_rootfs, tmp_path_factory):
    """Asked for by every test that starts a real jail."""
    require("cgroup:memory", "cgroup:pids")
    brig_tool.run(program="pass", folder=tmp_path_factory.mktemp("first"), env={"BRIG_SOCKET": None}) # the first one since boot makes what /run/brig keeps


@pytest.fixture(scope="session")
def world(needs_root, needs_rootfs):
    """Plain users on this host, and a way to be one of them (support/users.py)."""
    require("tool:newuidmap")
    made = users.World()
    yield made
    made.close()


@pytest.fixture(params=sorted(users.MODES))
def user(request):
    """A plain user of each kind: with a range of subordinate ids, and with his own id only."""
    return users.MODES[request.param]


@pytest.fixture(scope="session")
def brig():
    """The built brig."""
    path = brig_tool.binary()
    if not path.exists():
        pytest.fail(f"{path} is missing: ./dev build")
    return path


@pytest.fixture(scope="session")
def asan_build():
    """The build under AddressSanitizer and UBSan."""
    build = host.build_dir() / "asan"
    if not (build / "tests").exists():
        pytest.fail(f"{build} is missing: ./dev build asan")
    return build


@pytest.fixture
def tmp_path(tmp_path):
    """A service shows with --ro what its supervisors may reach, and they are unprivileged users of the host: pytest's own folders are closed."""
    if not runs.SESSION.stands_in():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="brig-test-") as folder:
        pathlib.Path(folder).chmod(0o755)
        yield pathlib.Path(folder)


@pytest.fixture
def run_brig(brig, tmp_path):
    """run_brig("--timeout", "1", program="print(1)", args=["x"]) -> support.brig.Run"""
    def run(*options, **kw):
        return brig_tool.run(*options, folder=tmp_path, **kw)
    return run


@pytest.fixture
def start_brig(brig, tmp_path):
    """Like run_brig, but returns while it runs; what still runs at the end of the test is killed."""
    running = []

    def start(*options, **kw):
        running.append(brig_tool.start(*options, folder=tmp_path, **kw))
        return running[-1]
    yield start
    for child in running:
        child.kill()
