"""Row I2: a request lowers limits, and can do nothing else to its jail."""
import pytest

from support import client

# Of limits.def, read by eye: least, most, and a value between that every profile allows.
LIMITS = {
    "wall_ms": (10, 86400000, 5000), "cpu_ms": (10, 86400000, 5000), "memory_bytes": (8 << 20, 1 << 40, 64 << 20), "pids": (1, 32768, 8),
    "cpus": (0.01, 1024, 0.5), "output_bytes": (1 << 10, 1 << 30, 4096), "tmp_bytes": (4 << 10, 1 << 40, 1 << 20), "workspace_bytes": (64 << 10, 1 << 40, 1 << 20),
    "inodes": (16, 10000000, 100), "files": (16, 1048576, 64),
}
NO_NUMBER = [None, True, [], {}, "", "x", "-1", "1e3", -1, -1e308, 1e308, 2 ** 63 - 1, [5000]]
PROFILES = ("basic", "strict")


def refused(talk, op="exec", **keys):
    keys = {"argv": ["true"], **keys} if op == "exec" else keys
    with pytest.raises(client.Refused) as found:
        talk.started(talk.begin(op, **keys))
    return found.value.code, found.value.field


@pytest.mark.diagonal("profile")
@pytest.mark.row("I2")
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.requirement("A98")
def test_no_limit_is_raised_above_its_ceiling(talk, name, profile):
    ceiling = talk.ask("explain", profile=profile)["ceilings"][name]
    above = [ceiling * 2, ceiling + (0.001 if name == "cpus" else 1), LIMITS[name][1]]
    for value in above:
        assert refused(talk, profile=profile, limits={name: value}) == ("above_ceiling", f"limits.{name}"), value
    if name.endswith("_bytes"):
        assert refused(talk, profile=profile, limits={name: f"{(ceiling >> 10) + 1}K"}) == ("above_ceiling", f"limits.{name}")


@pytest.mark.control("I2")
@pytest.mark.parametrize("name", LIMITS)
def test_control_the_ceiling_itself_is_allowed(talk, name):
    ceiling = talk.ask("explain", profile="basic")["ceilings"][name]
    ended = talk.command("true", limits={name: ceiling})
    assert ended.reason == "exited", ended


@pytest.mark.row("I2")
@pytest.mark.parametrize("name", LIMITS)
def test_no_limit_is_outside_its_range_or_of_another_type(talk, name):
    least, most, _ = LIMITS[name]
    for value in [least / 2 if name == "cpus" else least - 1, most * 2, most + 1, 0, *NO_NUMBER]:
        assert refused(talk, limits={name: value}) == ("bad_field", f"limits.{name}"), value
    if name != "cpus":
        assert refused(talk, limits={name: least + 0.5}) == ("bad_field", f"limits.{name}")


@pytest.mark.row("I2")
def test_one_limit_too_many_refuses_the_run_as_a_whole(talk):
    low = {name: value for name, (_, _, value) in LIMITS.items()}
    assert talk.command("true", limits=low).reason == "exited"
    for name in LIMITS:
        ceiling = talk.ask("explain", profile="basic")["ceilings"][name]
        assert refused(talk, limits={**low, name: ceiling * 2})[0] == "above_ceiling", name


@pytest.mark.row("I2")
@pytest.mark.parametrize("key", ["uid", "gid", "user", "root", "rootfs", "mounts", "policy", "network", "devices", "caps", "ceilings", "store", "path", "code", "require",
                                 "workspace_exec", "runtime_dir", "slot", "cgroup", "privileged", "description"])
def test_nothing_else_of_the_jail_can_be_asked_for(talk, key):
    for value in ("/", 0, True, {}):
        assert refused(talk, **{key: value}) == ("bad_field", key)
        assert refused(talk, limits={key: value})[0] == "bad_field"
