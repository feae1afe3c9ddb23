"""Profiles of one's own: BRIG_PROFILES, a plain user's directory, and what is refused about them."""
import json
import os
import re
import subprocess

import pytest

from support import brig as brig_tool
from support import client
from support import daemon as daemons
from support import host, users

SMALL = {"description": "small things", "rootfs": "basic", "policy": "python", "warm": "never", "limits": {"wall_ms": 20000}}
POLICY = "include python\nerrno ENOSYS getsid\n"


def write(folder, name="small", **changes):
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    (folder / f"{name}.json").write_text(json.dumps({**SMALL, **changes}))
    return folder


def tool(*words, **env):
    done = subprocess.run([brig_tool.binary(), *words], capture_output=True, text=True, timeout=host.HANG,
                          env=brig_tool.environment({"BRIG_PROFILES": None, "BRIG_PRESETS": None, **env}))
    return done


def listed(done):
    assert done.returncode == 0, done
    return {line.split()[0]: line for line in done.stdout.splitlines()}


@pytest.fixture
def mine(tmp_path):
    return write(tmp_path / "mine")


# --- BRIG_PROFILES ---

def test_brig_profiles_adds_to_the_presets(mine):
    before, after = listed(tool("profile", "list")), listed(tool("profile", "list", BRIG_PROFILES=str(mine)))
    assert after == {**before, "small": f"small          small things (from {mine})"} and {"basic", "strict"} <= before.keys()


def test_brig_presets_is_in_place_of_them(mine, tmp_path):
    write(tmp_path / "presets", "only")
    assert listed(tool("profile", "list", BRIG_PRESETS=str(tmp_path / "presets"))) == {"only": "only           small things"}
    assert listed(tool("profile", "list", BRIG_PRESETS=str(tmp_path / "presets"), BRIG_PROFILES=str(mine))).keys() == {"only", "small"}


def test_a_name_of_ones_own_wins_over_a_preset(mine):
    write(mine, "basic", description="another basic")
    assert listed(tool("profile", "list", BRIG_PROFILES=str(mine)))["basic"] == f"basic          another basic (from {mine})"


def test_a_profile_extends_another_and_a_limit_above_the_ceiling_names_the_profile_that_allows_it(tmp_path):
    refused = tool("run", "--private", "--memory", "2G", "-c", "1")
    assert refused.returncode == 125 and "--memory 2G is above the ceiling 1G of profile basic; " in refused.stderr, refused
    said = re.search(r"you can allow it: write (\{.*\}) into DIR/NAME.json, and set BRIG_PROFILES=DIR and -p NAME$", refused.stderr, re.M)[1]
    (tmp_path / "more.json").write_text(said)
    (tmp_path / "basic.json").write_text('{"extends": "basic", "description": "mine", "limits": {"pids": 7}}')
    found = json.loads(tool("explain", "--json", "more", BRIG_PROFILES=str(tmp_path)).stdout)
    assert (found["ceilings"]["memory_bytes"], found["limits"]["pids"], found["ceilings"]["pids"]) == (2 << 30, 7, 256), "one's own basic extends the preset"
    (tmp_path / "alone.json").write_text('{"extends": "alone"}')
    assert tool("profile", "check", "alone", BRIG_PROFILES=str(tmp_path)).stderr.endswith('alone.json: extends: there is no other profile "alone"\n')
    (tmp_path / "basic.json").write_text('{"extends": "more"}')
    done = tool("profile", "check", "more", BRIG_PROFILES=str(tmp_path))
    assert done.returncode != 0 and "more than 8 profiles extend each other" in done.stderr, done


def test_a_time_is_written_with_its_unit_in_a_profile_and_behind_an_option(tmp_path):
    write(tmp_path, limits={"wall_ms": "90s"}, ceilings={"wall_ms": "1d"})
    found = json.loads(tool("explain", "--json", "small", BRIG_PROFILES=str(tmp_path)).stdout)
    assert (found["limits"]["wall_ms"], found["ceilings"]["wall_ms"]) == (90000, 86400000)
    assert "--timeout 3600 s is above the ceiling" in tool("run", "--private", "--timeout", "1h", "-c", "1").stderr


@pytest.mark.parametrize("name", ["small", "basic"])
def test_explain_says_where_a_profile_comes_from_unless_it_is_ours(mine, name):
    text, found = tool("explain", name, BRIG_PROFILES=str(mine)), tool("explain", "--json", name, BRIG_PROFILES=str(mine))
    file = mine / "small.json" if name == "small" else host.build_dir() / "profiles/basic.json"
    assert (f"\nfrom      {mine}/small.json\n" in text.stdout) == (name == "small") and text.stdout.count("\nfrom ") == (name == "small")
    assert json.loads(found.stdout)["file"] == str(file)


def test_a_run_has_a_policy_of_ones_own_that_includes_one_of_ours(jail, run_brig, mine):
    (mine / "mine.policy").write_text(POLICY)
    write(mine, policy="mine")
    program = "import os\ntry:\n    print(os.getsid(0) > 0)\nexcept OSError as e:\n    print(e.errno)"
    run = run_brig("-p", "small", env={"BRIG_PROFILES": str(mine)}, program=program)
    assert (run.status, run.out) == (0, "38\n"), str(run)
    control = run_brig("-p", "basic", env={"BRIG_PROFILES": str(mine)}, program=program)
    assert (control.status, control.out) == (0, "True\n"), str(control)


def test_a_policy_of_ours_is_named_without_a_copy_of_it(jail, run_brig, mine):
    run = run_brig("-p", "small", env={"BRIG_PROFILES": str(mine)}, program="print(6 * 7)")
    assert (run.status, run.out, run.record["profile"]) == (0, "42\n", "small"), str(run)


def test_an_unknown_name_is_told_where_it_was_looked_for(mine):
    done = tool("explain", "none", BRIG_PROFILES=str(mine))
    assert done.returncode != 0 and f"does not exist in {mine} or " in done.stderr and str(host.build_dir() / "profiles")[:80] in done.stderr and "small" in done.stderr


# --- refused ---

def refused(done, *words):
    assert done.returncode != 0 and done.stdout == "" and done.stderr.count("\n") == 1 and all(word in done.stderr for word in words), done


@pytest.mark.parametrize("words", [["profile", "list"], ["profile", "check", "basic"], ["explain", "basic"], ["explain", "small"]], ids=" ".join)
@pytest.mark.parametrize("variable", ["BRIG_PROFILES", "BRIG_PRESETS"])
def test_a_directory_that_everybody_may_write_to_is_refused(mine, variable, words):
    mine.chmod(0o1777)
    refused(tool(*words, **{variable: str(mine)}), str(mine), "all users may write to it", "chmod go-w")


def test_a_run_with_such_a_directory_is_refused_and_without_that_bit_it_is_not(jail, run_brig, mine):
    mine.chmod(0o777)
    run = run_brig("-p", "basic", env={"BRIG_PROFILES": str(mine)}, program="print(1)", json_record=False)
    assert (run.status, run.stdout) == (125, "") and "all users may write to it" in run.stderr, str(run)
    mine.chmod(0o755)
    run = run_brig("-p", "basic", env={"BRIG_PROFILES": str(mine)}, program="print(1)", json_record=False)
    assert (run.status, run.stdout) == (0, "1\n"), str(run)


def test_a_directory_that_is_not_there_is_told_when_it_was_named(tmp_path):
    refused(tool("profile", "list", BRIG_PROFILES=str(tmp_path / "none")), "BRIG_PROFILES", str(tmp_path / "none"), "No such file")


def test_a_service_with_such_a_directory_serves_none_of_its_profiles_and_says_why(jail, mine):
    mine.chmod(0o777)
    with daemons.Daemon(env={"BRIG_PRESETS": str(mine)}) as one:
        assert host.poll(lambda: "all users may write to it" in one.words()), one.words()
        with one.connect() as talk, pytest.raises(client.Refused, match="does not exist here; there are: none"):
            talk.run("print(1)", profile="small")


# --- a plain user's directory ---

class Home:
    """A plain user's directory of profiles, and brig run by that user."""

    def __init__(self, world, user):
        self.world, self.user = world, user
        self.inside = world.root / "home" / user.name / ".config/brig/profiles"
        self.folder = world.path(f"home/{user.name}/.config/brig/profiles")

    def write(self, name="small", **changes):
        write(self.folder, name, **changes)
        for path in (self.folder, *self.folder.iterdir()):
            os.chown(path, self.user.uid, self.user.uid)

    def tool(self, *words, **env):
        settings = [f"{name}={value}" for name, value in {"BRIG_PRESETS": "", **env}.items()]
        return subprocess.run(self.world.as_user(self.user, *settings, self.world.binary, *words), capture_output=True, text=True, timeout=host.HANG)


@pytest.fixture
def home(world):
    made = Home(world, users.BARE)
    made.write()
    yield made
    subprocess.run(["rm", "-rf", world.path(f"home/{users.BARE.name}/.config"), world.path(f"home/{users.BARE.name}/elsewhere")], check=True)


def test_a_plain_users_own_profiles_are_listed_and_explained(home):
    rows = listed(home.tool("profile", "list"))
    assert rows["small"] == f"small          small things (from {home.inside})" and "from" not in rows["basic"]
    assert f"\nfrom      {home.inside}/small.json\n" in home.tool("explain", "small").stdout


def test_a_plain_users_runs_take_that_users_profiles_and_policies(home):
    (home.folder / "mine.policy").write_text(POLICY)
    home.write(policy="mine")
    done = home.tool("run", "-p", "small", str(home.world.program("print(6 * 7)")))
    assert (done.returncode, done.stdout) == (0, "42\n"), done


def test_a_users_names_win_over_the_presets_and_brig_profiles_wins_over_both(home, tmp_path):
    home.write("basic", description="the user's basic")
    other = home.world.path(f"home/{home.user.name}/elsewhere")
    write(other, "basic", description="the named one")
    assert "the user's basic" in listed(home.tool("profile", "list"))["basic"]
    assert "the named one" in listed(home.tool("profile", "list", BRIG_PROFILES=home.world.root / "home" / home.user.name / "elsewhere"))["basic"]


def test_xdg_config_home_may_name_the_users_directory(home):
    elsewhere = home.world.root / "home" / home.user.name / "elsewhere"
    write(home.world.path(f"home/{home.user.name}/elsewhere/brig/profiles"), "other")
    home.world.change(f"chown -R {home.user.uid} {elsewhere}")
    rows = listed(home.tool("profile", "list", XDG_CONFIG_HOME=elsewhere))
    assert "other" in rows and "small" not in rows


def test_a_users_own_service_reads_them(home, built):
    daemon = daemons.Daemon.__new__(UsersService)
    daemon.__init__(home)
    try:
        with daemon.connect_as(home.user.uid) as talk:
            assert talk.run("print(6 * 7)", profile="small").stdout == "42\n"
    finally:
        daemon.close()


class UsersService(daemons.Daemon):
    """A plain user's own brigd, as in tests/service/test_daemon_rootless.py."""

    def __init__(self, home):
        self.home = home
        super().__init__(folder=home.world.path(f"home/{home.user.name}"))

    def command(self):
        inside = self.home.world.root / "home" / self.home.user.name
        argv = [self.home.world.root / "build" / "bin" / "brigd", "--foreground", "--socket", inside / "brig.sock"]
        return [str(word) for word in self.home.world.as_user(self.home.user, "BRIG_PRESETS=", f"NOTIFY_SOCKET={inside / 'notify'}", *argv)]


@pytest.fixture
def built():
    if reason := daemons.lacks_binaries():
        pytest.fail(reason)


def test_a_service_that_root_starts_reads_no_users_own_and_says_what_does(jail, tmp_path, mine):
    for name in ("XDG_CONFIG_HOME", "HOME"):
        write(tmp_path / ("brig/profiles" if name == "XDG_CONFIG_HOME" else ".config/brig/profiles"))
        with daemons.Daemon(env={name: str(tmp_path)}) as one, one.connect() as talk:
            with pytest.raises(client.Refused, match="does not exist here; there are: basic, .*; brig run --private reads those of your own"):
                talk.run("print(1)", profile="small")
            assert talk.run("print(1)").stdout == "1\n"


def test_root_has_no_such_directory(needs_root, tmp_path):
    write(tmp_path / "brig/profiles")
    write(tmp_path / ".config/brig/profiles")
    assert "small" not in listed(tool("profile", "list", XDG_CONFIG_HOME=str(tmp_path), HOME=str(tmp_path)))


@pytest.mark.parametrize("script, words", [("chmod 777 {}", "all users may write to it"), ("chown {other} {}", "it must be yours or root's")], ids=["world-writable", "another user's"])
def test_a_users_directory_is_refused_when_others_may_write_to_it(home, script, words):
    home.world.change(script.format(home.inside, other=users.OTHER.uid))
    refused(home.tool("profile", "list"), words, str(home.inside))
    done = home.tool("run", str(home.world.program("print(1)")))
    assert (done.returncode, done.stdout) == (125, "") and words in done.stderr, done


def test_a_home_that_the_user_may_not_enter_is_skipped(home, tmp_path):
    """runuser and sudo may leave the HOME of another user."""
    closed = home.world.path("closed")
    write(closed / ".config/brig/profiles")
    closed.chmod(0o700)
    rows = listed(home.tool("profile", "list", HOME=home.world.root / "closed"))
    assert "basic" in rows and "small" not in rows
