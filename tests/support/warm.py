"""Profiles with a zygote: the shipped ones, changed where a test says so."""
import json
import pathlib
import shutil
import tempfile

from support import host


def profiles(folder, *names, **keys):
    """A folder of profiles below this one; those that are named (every one: none) fork their runs."""
    made = pathlib.Path(folder) / "profiles"
    shutil.copytree(host.REPO / "profiles", made)
    for path in made.glob("*.json"):
        if not names or path.stem in names:
            path.write_text(json.dumps({**json.loads(path.read_text()), "warm": "demand", **keys}))
    for path in (pathlib.Path(folder), made):
        path.chmod(0o755)
    return made


def scratch_profiles(*names, **keys):
    """The folder, which is kept by who calls, and the profiles in it."""
    scratch = tempfile.TemporaryDirectory(prefix="brig-test-warm-")
    return scratch, profiles(scratch.name, *names, **keys)


def wait(talk, profile="basic"):
    """Until the profile's zygote is there: a service does not wait for it, and neither does a run."""
    assert host.poll(lambda: talk.run("pass", profile=profile).record["warm"]), f"no zygote of profile {profile}"
