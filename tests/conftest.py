"""The project's pytest plugin: C unit tests as items, fixtures, tiers, and what may never be skipped."""
import fnmatch
import pathlib
import shutil
import signal
import subprocess
import tempfile

import pytest

from support import brig as brig_tool
from support import host, matrix, runs, users

REPO = pathlib.Path(__file__).resolve().parent.parent
MUST_RUN = REPO / "tests" / "must-run"
TIERS = {
    "long": "takes more than a minute; run with -m long",
    "vm": "needs another kernel in a virtual machine; run with -m vm",
}


# --- tiers -----------------------------------------------------------------------------------------

def pytest_configure(config):
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN: # a shell's "&": brig would keep it ignored, and the tests of Ctrl-C wait in vain
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name, meaning in TIERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")
    config.addinivalue_line("markers", "private(why): its subject is a brigd of one's own, also where runs are warm")
    config.addinivalue_line("markers", "row(id): the row of the escape matrix that this test carries")
    config.addinivalue_line("markers", "control(id): the same attack where there is no jail, which must succeed")
    config.pluginmanager.register(MustRun(config), "must-run")
    config.pluginmanager.register(Runs(config), "runs")
    config.pluginmanager.register(matrix.Matrix(), "escape-matrix")


def pytest_collection_modifyitems(config, items):
    """Leaves out the tiers that nobody asked for."""
    if config.option.markexpr:
        return
    out = [item for item in items if any(item.get_closest_marker(tier) for tier in TIERS)]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


# --- no test may hang -------------------------------------------------------------------------------

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    """A test that is still running after two minutes fails where it stands (long and vm: an hour, or what the marker says)."""
    tier = next((mark for mark in map(item.get_closest_marker, TIERS) if mark), None)
    seconds = tier.kwargs.get("seconds", 3600) if tier else int(120 * host.SLOWER)

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
        try:
            # stdout goes to a file of its own: what a crash leaves in a buffer is lost either way
            done = subprocess.run([program], capture_output=True, text=True, errors="replace", timeout=60)
        except subprocess.TimeoutExpired:
            yield TapItem.from_parent(self, name="ends by itself", bad=f"{program}: still running after 60 s")
            return
        seen = set()
        for ok, sentence, notes in parse_tap(done.stdout):
            name, again = sentence, 2
            while name in seen:
                name, again = f"{sentence} ({again})", again + 1
            seen.add(name)
            yield TapItem.from_parent(self, name=name, bad=None if ok else f"not ok - {sentence}\n{notes}")
        plan = f"1..{len(seen)}" in done.stdout.splitlines()
        failed = "\nnot ok " in "\n" + done.stdout
        if not plan or done.returncode != (1 if failed else 0):
            yield TapItem.from_parent(self, name="runs to its end", bad=(
                f"{program}: status {done.returncode} after {len(seen)} promises, plan line "
                f"{'found' if plan else 'missing'}\n{done.stdout[-500:]}{done.stderr[-3000:]}"))


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


# --- what may never be skipped ------------------------------------------------------------------------

class MustRun:
    """tests/must-run: sections "[what the machine has]" of patterns; each must be collected and not skipped."""

    def __init__(self, config):
        self.config = config
        self.ran, self.skipped, self.broken = set(), {}, []

    def pytest_runtest_logreport(self, report):
        if report.skipped and not hasattr(report, "wasxfail"): # what is known to fail did run
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            self.skipped[report.nodeid] = reason
        elif report.when == "call" or report.failed:
            self.ran.add(report.nodeid)

    def is_full_run(self):
        option = self.config.option
        if option.markexpr or option.keyword or option.collectonly or getattr(option, "deselect", None):
            return False
        return all(pathlib.Path(arg).resolve() in (REPO, REPO / "tests") for arg in self.config.args)

    def pytest_sessionfinish(self, session):
        if not self.is_full_run() or session.shouldstop or session.shouldfail:
            return
        for pattern in must_run_patterns(MUST_RUN.read_text()):
            for name, reason in self.skipped.items():
                if fnmatch.fnmatchcase(name, pattern):
                    self.broken.append(f"{name} may not be skipped on this kind of machine, but was: {reason}")
            if not any(fnmatch.fnmatchcase(name, pattern) for name in self.ran | set(self.skipped)):
                self.broken.append(f"{pattern}: no such test ran, but tests/must-run demands it")
        if self.broken and session.exitstatus == 0:
            session.exitstatus = 1

    def pytest_terminal_summary(self, terminalreporter):
        for line in self.broken:
            terminalreporter.write_line(f"MUST RUN: {line}", red=True)


def must_run_patterns(text):
    """The patterns of every section whose needs this machine meets."""
    wanted, patterns = True, []
    for line in text.splitlines():
        line = line.split("#", 1)[0].strip()
        if line.startswith("["):
            wanted = all(host.lacks(need) is None for need in line.strip("[]").split())
        elif line and wanted:
            # "[" opens a class in fnmatch, and every parametrised test has one in its name
            patterns.append(line.replace("[", "[[]"))
    return patterns


# --- warm and cold runs ---------------------------------------------------------------------------------

class Runs:
    """$BRIG_TEST_RUNS: how the runs of this session begin, and how many did (support/runs.py)."""

    def __init__(self, config):
        self.config, self.wrong = config, None
        if not config.option.collectonly:
            runs.SESSION.begin()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item):
        mark = item.get_closest_marker("private")
        assert not mark or mark.args, f"{item.nodeid}: @private says no reason"
        runs.SESSION.private = mark and mark.args[0]

    def pytest_sessionfinish(self, session):
        self.wrong = runs.SESSION.wrong()
        if self.wrong and session.exitstatus == 0:
            session.exitstatus = 1

    def pytest_terminal_summary(self, terminalreporter):
        count = runs.SESSION.count
        if count:
            terminalreporter.write_line(f"runs: {count['warm']} warm, {count['cold']} cold ({runs.mode() or 'as the profiles say'})")
        if self.wrong:
            terminalreporter.write_line(f"RUNS: {self.wrong}", red=True)

    def pytest_unconfigure(self):
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
    """The build under AddressSanitizer and UBSan; a few seconds when nothing changed."""
    for tool in ("cmake", "ninja"):
        if not shutil.which(tool):
            pytest.skip(f"needs the program {tool}")
    build = REPO / "build" / "asan"
    for argv in (["cmake", "--preset", "asan", "-G", "Ninja"], ["cmake", "--build", build]):
        done = subprocess.run(argv, cwd=REPO, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    return build


@pytest.fixture
def tmp_path(tmp_path):
    """A service shows with --ro what its launchers may walk to, and they are nobody: pytest's own folders are closed."""
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
