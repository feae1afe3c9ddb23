"""CPython's own tests, run in a jail and beside it: what became of every method, and where the two differ.

Three ways: outside (tests/soak/outside.sh: the same tree, no jail), warm (a fork of the profile's zygote), cold.
"""
import collections
import dataclasses
import fnmatch
import functools
import json
import subprocess
import tempfile

from support import brig, client, daemon, host, longlog, warm

FOLDER = host.REPO / "tests" / "soak"
RUNNER, RECIPE = FOLDER / "runner.py", FOLDER / "cpython.json"
NAME = RECIPE.stem
MARK = "@compat "
RESOURCES = "all,-network,-urlfetch,-gui,-largefile,-audio,-tzdata"
WALL = 600 # seconds for one module
CPUS = 2

PROFILE = {
    "description": "for CPython's own tests: more of everything than basic has", "rootfs": NAME, "policy": "python", "workspace_exec": True,
    "limits": {"wall_ms": WALL * 1000, "cpu_ms": 2 * WALL * 1000, "memory_bytes": "2G", "pids": 256, "cpus": CPUS, "output_bytes": "16M", "tmp_bytes": "1G",
               "workspace_bytes": "1G", "inodes": 100000, "files": 1024},
    "ceilings": {"wall_ms": WALL * 1000, "cpu_ms": 2 * WALL * 1000, "memory_bytes": "2G"},
}
SERVICE = {"runs": 8, "access": [{"uid": 0, "profiles": [NAME], "runs": 8, "runs_per_minute": 100000}]}


def groups():
    return json.loads((FOLDER / "modules.json").read_text())


def tree():
    return (host.store_dir() / "names" / NAME).resolve() / "tree"


@functools.lru_cache(maxsize=None)
def lacks():
    """None when the tree is there, if need be built just now; else the reason to print for a skip."""
    if not host.has_rootfs(NAME):
        built = subprocess.run([host.REPO / "dev", "rootfs", RECIPE], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if built.returncode != 0:
            return f"needs the rootfs {NAME}: ./dev rootfs {RECIPE.relative_to(host.REPO)} said {built.stderr.strip().splitlines()[-1:]}"
    return None


def service(factory, kind="demand", before=()):
    """A daemon whose one profile is ours; factory: pytest's, of folders; kind: when its zygote forks; before: words like nice."""
    folder = factory.mktemp("cpython")
    host.open_way(folder)
    (folder / "profiles").mkdir()
    policies = [(path.name, path.read_text()) for path in (host.REPO / "profiles").glob("*.policy")]
    for name, text in [(f"{NAME}.json", json.dumps({**PROFILE, "warm": kind})), *policies]:
        (folder / "profiles" / name).write_text(text)
    made = daemon.Daemon(SERVICE, env={"BRIG_PRESETS": str(folder / "profiles")}, through=[*daemon.with_accounts(), *before])
    try:
        with made.connect() as talk:
            warm.wait(talk, NAME)
    except BaseException:
        made.close()
        raise
    return made


# --- one module -------------------------------------------------------------------------------------------

@dataclasses.dataclass
class Outcome:
    """What became of one module, one way."""
    module: str
    word: str      # regrtest's, or how the run ended without one
    methods: dict  # id -> [was, why]
    warm: bool     # as the record says; None outside
    last: str      # the method that had begun when it ended early
    seconds: float

    def passed(self):
        return {name for name, (was, _) in self.methods.items() if was == "pass"}


RANK = ("pass", "skip", "xfail", "xpass", "fail", "error")


def read(module, stdout, end, warm, seconds):
    """What the runner said, among all that the tests printed."""
    methods, last, word = {}, "", f"ended early: {end}"
    for line in stdout.splitlines():
        row = said(line)
        if "begin" in row:
            last = row["begin"]
        elif "id" in row:
            before = methods.get(row["id"], ["pass", ""])
            methods[row["id"]] = max(before, [row["was"], row["why"]], key=lambda one: RANK.index(one[0]))
        elif "module" in row:
            word, last = row["module"], ""
    return Outcome(module, word, methods, warm, last, seconds)


def said(line):
    if not line.startswith(MARK):
        return {}
    try:
        return json.loads(line.removeprefix(MARK))
    except ValueError: # a test printed it
        return {}


def outside(module, before=()):
    with tempfile.TemporaryDirectory(prefix="brig-test-outside-") as root:
        argv = [*before, "unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--net", "--ipc", "--uts",
                "sh", FOLDER / "outside.sh", tree(), root, RUNNER, MARK, RESOURCES, module]
        child = brig.Child([str(word) for word in argv], env={"BRIG_THREADS": str(CPUS)}, start_new_session=True)
        done = child.wait(WALL * host.SLOWER)
    return read(module, done.stdout, f"status {done.status}", None, done.seconds)


def inside(service, module, cold=False):
    """A run that is refused or hangs is told as an end; the others go on."""
    try:
        with service.connect(timeout=WALL + host.HANG) as talk:
            run = talk.start(RUNNER.read_text(), profile=NAME, args=[MARK, RESOURCES, module], **({"cold": True} if cold else {}))
            done = run.finish(WALL + host.HANG)
    except (client.NotStarted, client.Refused, client.Closed, TimeoutError) as e:
        return Outcome(module, f"ended early: {type(e).__name__} {e}"[:300], {}, None, "", 0.0)
    return read(module, done.stdout, f"{done.reason} {done.status}", done.record["warm"], (done.record["wall_ms"] or 0) / 1000)


# --- what differs -----------------------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Difference:
    module: str
    method: str
    outside: str
    inside: str
    why: str

    def __str__(self):
        return f"{self.module}: {self.method}: {self.outside} outside, {self.inside} inside: {self.why[:160]}"


def differences(there, here):
    """Method by method; a run that ended early is one difference, not one for each method it did not come to."""
    if here.word != there.word and "ended early" in here.word + there.word:
        yield Difference(here.module, "", there.word, here.word, f"in {here.last or there.last}")
    for name in there.methods.keys() | here.methods.keys():
        one, other = (which.methods.get(name, ("absent", "")) for which in (there, here))
        early = "absent" in (one[0], other[0]) and "ended early" in here.word + there.word
        if one[0] != other[0] and not early:
            yield Difference(here.module, name, one[0], other[0], other[1] or one[1])


@functools.lru_cache(maxsize=None)
def accepted():
    """Rows of module, methods (patterns), inside (what they are there) and why."""
    return json.loads((FOLDER / "accepted.json").read_text())


def row_of(difference):
    """The reviewed row that speaks of it."""
    for row in accepted():
        if (row["module"], row["inside"]) == (difference.module, difference.inside) and any(fnmatch.fnmatchcase(difference.method, pattern) for pattern in row["methods"]):
            return row
    return None


@dataclasses.dataclass
class Measured:
    """One module, each way of WAYS. In left is what differs from outside each time: {way: {Difference}}; in once, what did not do so again."""
    module: str
    outcomes: dict
    left: dict
    once: set
    commit: str = longlog.HEADING[0].split(maxsplit=1)[1]

    def unknown(self):
        return {way: sorted(map(str, found)) for way, all_ in self.left.items() if (found := [one for one in all_ if not row_of(one)])}


WAYS = ("outside", "warm", "cold")


def measure(service, module, inside_ways=("warm", "cold"), again=2, before=()):
    """What depends on a moment is tried again, and outside, too."""
    def ask():
        outcomes = {"outside": outside(module, before), **{way: inside(service, module, cold=way == "cold") for way in inside_ways}}
        return outcomes, {way: set(differences(outcomes["outside"], outcomes[way])) for way in inside_ways}
    outcomes, left = ask()
    first = Measured(module, outcomes, left, set())
    for _ in range(again):
        if not first.unknown():
            break
        _, found = ask()
        for way in inside_ways:
            seen = {(one.method, one.outside, one.inside) for one in found[way]}
            gone = {one for one in left[way] if not row_of(one) and (one.method, one.outside, one.inside) not in seen}
            left[way] -= gone
            first.once |= gone
    return first


def score(measured, way):
    """(passed outside, of these passed this way)"""
    passed = [(one.outcomes["outside"].passed(), one.outcomes[way].passed()) for one in measured]
    return sum(len(there) for there, _ in passed), sum(len(there & here) for there, here in passed)


# --- what is kept -----------------------------------------------------------------------------------------

def store(measured, path):
    """A line for each module, as it comes: a run that is ended in between has not run in vain."""
    row = {"module": measured.module, "outcomes": {way: dataclasses.asdict(one) for way, one in measured.outcomes.items()},
           "left": {way: [dataclasses.asdict(one) for one in found] for way, found in measured.left.items()},
           "once": [dataclasses.asdict(one) for one in measured.once], "commit": measured.commit}
    with open(path, "a") as f:
        f.write(json.dumps(row) + "\n")


def stored(path):
    """What is kept there, {module: Measured}."""
    found = {}
    for line in host.read(path).splitlines():
        row = json.loads(line)
        found[row["module"]] = Measured(row["module"], {way: Outcome(**one) for way, one in row["outcomes"].items()},
                                        {way: {Difference(**one) for one in all_} for way, all_ in row["left"].items()}, {Difference(**one) for one in row["once"]}, row["commit"])
    return found


def log_lines(measured):
    """The log's block of one group."""
    yield f"{len(measured)} modules: seconds of all together " + ", ".join(f"{way} {sum(one.outcomes[way].seconds for one in measured):.0f}" for way in WAYS)
    methods = sum(len(one.outcomes['outside'].methods) for one in measured)
    yield f"{methods} methods outside"
    commits = collections.Counter(one.commit for one in measured)
    yield f"measured at commit: {', '.join(f'{commit} ({n})' for commit, n in commits.most_common())}"
    for way in ("warm", "cold"):
        there, here = score(measured, way)
        yield f"{way}: of {there} that pass outside {here} pass, {100 * here / max(1, there):.3f} %"
    forked = sum(one.outcomes["warm"].warm is True for one in measured)
    yield f"forked by the zygote: {forked} of {len(measured)} warm runs"
    for title, rows in [("differs, and is not accepted", {f"{way} {line}" for one in measured for way, lines in one.unknown().items() for line in lines}),
                        ("differed once, and not when it was tried again", {str(one) for each in measured for one in each.once}),
                        ("accepted rows that nothing needs", unused_rows(measured))]:
        yield f"{title}: {len(rows)}"
        yield from (f"  {row}" for row in sorted(rows))
    yield "module: passed outside, warm, cold"
    for one in sorted(measured, key=lambda one: one.module):
        words = {one.outcomes[way].word for way in WAYS}
        yield f"  {one.module}: {', '.join(str(len(one.outcomes[way].passed())) for way in WAYS)}{'' if len(words) == 1 else ' (' + ', '.join(one.outcomes[way].word for way in WAYS) + ')'}"


def unused_rows(measured):
    modules = {one.module for one in measured}
    seen = [(one.module, one.inside, one.method) for each in measured for found in each.left.values() for one in found]
    return {f"{row['module']} {row['inside']} {pattern}" for row in accepted() if row["module"] in modules for pattern in row["methods"]
            if not any((row["module"], row["inside"]) == (module, was) and fnmatch.fnmatchcase(method, pattern) for module, was, method in seen)}
