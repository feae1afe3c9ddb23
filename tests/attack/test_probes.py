"""Every small attack in a jail of each kind, where it must fail, and outside of one, where it must succeed."""
import functools
import secrets
import socket

import pytest

import outside
import probes_calls, probes_files, probes_kernel, probes_limits  # they register
from outside import PROBES
from support import brig, host, runs, tiers, users, warm
from support import daemon as daemons

GROUPS = (4, 24, 27) # brig is started with them, so that there is something to drop


def skip_without(need):
    if need and host.lacks(need):
        pytest.skip(host.lacks(need))


def each(probes):
    """Parametrises with sentences as names, and marks of the row."""
    return [pytest.param(p, id=str(p), marks=pytest.mark.row(p.id)) for p in probes]


def six_server():
    """Listens on ::1; where the host has no IPv6, on nothing that can be reached by it."""
    return socket.create_server(("::1", 0), family=socket.AF_INET6) if socket.has_ipv6 else socket.create_server(("127.0.0.1", 0))


@pytest.fixture(scope="session")
def given(tmp_path_factory):
    """What the attacks look for: canary files, and listeners on the host."""
    token = f"canary-{secrets.token_hex(8)}"
    folder = tmp_path_factory.mktemp("host")
    folder.chmod(0o755)
    canaries = [folder / token, folder / "home" / token, folder / "root" / f"{token}.key"]
    for path in canaries:
        path.parent.mkdir(exist_ok=True)
        path.write_text(token)
    with socket.create_server(("127.0.0.1", 0)) as tcp, six_server() as tcp6, socket.socket(socket.AF_UNIX) as unix, \
            socket.socket(socket.AF_UNIX) as named:
        unix.bind("\0" + token)
        unix.listen()
        named.bind(str(folder / "socket"))
        yield {"canaries": [str(p) for p in canaries], "token": token, "port": tcp.getsockname()[1], "port6": tcp6.getsockname()[1]}
    assert [p.read_text() for p in canaries] == [token] * len(canaries), "a canary of the host was changed"


@pytest.fixture(scope="session")
def zygotes(jail):
    """A service of root whose runs are forked, whatever the session's are."""
    scratch, profiles = warm.scratch_profiles()
    with scratch, daemons.Daemon(runs.CONFIG, env={"BRIG_PRESETS": str(profiles)}) as service:
        with service.connect() as talk:
            warm.wait(talk)
        yield service


@pytest.fixture(scope="session")
def runners(request, tmp_path_factory):
    """One way of starting a jail each: runner(*options, program) -> Run."""
    def as_root(*options, program, **kw):
        return brig.run(*options, program=program, folder=tmp_path_factory.mktemp("jail"), popen={"extra_groups": GROUPS}, **kw)

    def forked(*options, program):
        run = as_root(*options, program=program, env={"BRIG_SOCKET": str(request.getfixturevalue("zygotes").path)})
        assert run.record["warm"], str(run)
        return run

    def as_user(user, *options, program):
        return request.getfixturevalue("world").run(user, *options, program=program, groups=GROUPS)
    return {"root": as_root, "warm": forked} | {mode: functools.partial(as_user, user) for mode, user in users.MODES.items()}


@pytest.fixture(scope="session")
def jailed(runners, given):
    """Runs the probes of one set of options together in one jail of each kind; {probe: result} and the run."""
    done = {}

    def result(wanted, mode):
        key = wanted.options, mode
        if key not in done:
            done[key] = run_batch([p for p in PROBES if p.options == wanted.options], given, runners[mode])
        return done[key]
    return result


def run_batch(batch, given, runner):
    text = outside.program({str(p): p.attack for p in batch}, given)
    modules = host.read("/proc/modules")
    run = runner("--timeout", "300", "--cpu-time", "300", *(batch[0].options or ()), program=text)
    assert host.read("/proc/modules") == modules, "a kernel module was loaded"
    return run, outside.answers(run.out)


@pytest.mark.private("a jail of each kind is its subject")
@pytest.mark.parametrize("mode", tiers.few(["root", "warm", *users.MODES], "root", "warm", "single"))
@pytest.mark.parametrize("probe", each(PROBES))
def test_jail(jail, probe, mode, jailed):
    skip_without(probe.needs)
    run, found = jailed(probe, mode)
    assert str(probe) in found, f"{probe}: no answer\n{run}"
    result = found[str(probe)]
    if not outside.holds(probe.jail, result):
        pytest.fail(f"{probe}\n  result {str(result)[:1500]}\n  {run.argv[1:]}: {run.reason}, stderr {run.stderr[-500:]!r}", pytrace=False)


@pytest.fixture(scope="session")
def freed(needs_root, given):
    """Runs the controls of one place together; {probe: result}."""
    done = {}

    def result(wanted):
        if wanted.where not in done:
            batch = {str(p): p.attack for p in PROBES if p.where == wanted.where and p.free}
            done[wanted.where] = outside.run_free(batch, given, wanted.where, extra_groups=GROUPS)
        return done[wanted.where][str(wanted)]
    return result


@pytest.mark.parametrize("probe", [pytest.param(p, id=str(p), marks=pytest.mark.control(p.id)) for p in PROBES if p.free])
def test_control(probe, freed):
    skip_without("overlay" if probe.where == "scratch" else "")
    skip_without(probe.needs)
    result = freed(probe)
    if not outside.holds(probe.free, result):
        pytest.fail(f"{probe}: the attack does not work without a jail, so the row proves nothing\n  result {str(result)[:1500]}", pytrace=False)

