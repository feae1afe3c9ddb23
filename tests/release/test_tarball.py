"""The tarball: a folder that needs nothing of the host but its kernel. The gate tries one of this host's static programs, nightly the one that is released."""
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from support import bare, host

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIX_TIMES_SEVEN = ["run", "-q", "-c", "print(6 * 7)"]


def dev(*words):
    done = subprocess.run(["./dev", *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return ROOT / done.stdout.splitlines()[-1].split(" has ")[0]


@pytest.fixture(scope="module")
def here(needs_root):
    folder = dev("tarball", "here")
    if not (folder / "bin/brigd").exists():
        pytest.skip("missing library: archives of all that brigd links (Debian 12 has them)")
    return folder


@pytest.fixture
def unpacked(here):
    """(a root directory that has nothing, brig's folder in it, its path there): as root unpacks it, in a folder with a space."""
    with tempfile.TemporaryDirectory(prefix="brig-test-") as name: # pytest's own folders are closed to others
        root = pathlib.Path(name)
        root.chmod(0o755)
        folder = root / "a place" / here.name
        folder.parent.mkdir()
        with subprocess.Popen(["tar", "-C", here.parent, "--owner=0", "--group=0", "-c", here.name], stdout=subprocess.PIPE) as packed:
            subprocess.run(["tar", "-C", folder.parent, "-xp"], stdin=packed.stdout, check=True)
        yield root, folder, f"/a place/{here.name}"


@pytest.mark.gate
@pytest.mark.parametrize("uid", [0, 1234], ids=["root", "a plain user"])
def test_a_program_runs_in_a_root_directory_that_has_nothing(unpacked, uid):
    """No C library, no shell, no /etc, and /tmp for the plain user alone. Nothing is written outside of what a run writes on any host."""
    root, folder, path = unpacked
    if uid:
        (root / "tmp").mkdir()
        (root / "tmp").chmod(0o1777)
    done = bare.run(root, [f"{path}/bin/brig", *SIX_TIMES_SEVEN], host.HANG, uid=uid)
    assert (done.returncode, done.stdout, done.stderr) == (0, "42\n", ""), done
    assert {one.name for one in root.iterdir()} == {"a place", "proc", "sys", "dev", "tmp" if uid else "run"}


@pytest.mark.gate
def test_a_plain_user_of_a_host_without_tmp_gets_the_line_to_type(unpacked):
    done = bare.run(unpacked[0], [f"{unpacked[2]}/bin/brig", *SIX_TIMES_SEVEN], host.HANG, uid=1234)
    assert done.returncode == 125 and "mkdir -m 1777 /tmp" in done.stderr, done


@pytest.mark.gate
def test_any_user_can_copy_it_and_run_the_copy(unpacked):
    """Root's folder, before root has run anything: nothing in it is closed, and the copy makes the locks that it needs."""
    root, folder, _ = unpacked
    home = root / "home"
    home.mkdir()
    os.chown(home, 1234, 1234)
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)
    done = subprocess.run(["cp", "-r", folder, home / "brig"], user=1234, group=1234, extra_groups=[], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert {path.stat().st_uid for path in home.rglob("*") if not path.is_symlink()} == {1234}
    shutil.rmtree(folder)
    done = bare.run(root, ["/home/brig/bin/brig", *SIX_TIMES_SEVEN], host.HANG, uid=1234)
    assert (done.returncode, done.stdout, done.stderr) == (0, "42\n", ""), done
    lock = next(home.glob("brig/store/trees/*/lock"))
    assert lock.stat().st_mode & 0o777 == 0o600


@pytest.mark.gate
def test_doctor_prints_an_apparmor_profile_for_the_path_of_the_tarball(unpacked):
    root, _, path = unpacked
    done = bare.run(root, [f"{path}/bin/brig", "doctor", "--apparmor"], host.HANG)
    assert done.returncode == 0 and f'\nprofile "{path}/bin/brig" flags=(unconfined) {{\n  userns,\n}}\n' in done.stdout, done
    if shutil.which("apparmor_parser"):
        text = done.stdout if os.path.exists("/etc/apparmor.d/abi/4.0") else done.stdout.replace("abi <abi/4.0>", "abi <abi/3.0>").replace("  userns,\n", "")
        parsed = subprocess.run(["apparmor_parser", "--skip-kernel-load", "--skip-cache", "--names"], input=text, capture_output=True, text=True)
        assert (parsed.returncode, parsed.stdout.strip()) == (0, f"{path}/bin/brig"), parsed


@pytest.mark.gate
def test_its_programs_load_nothing_and_their_folder_is_found_through_a_link(unpacked, tmp_path):
    _, folder, _ = unpacked
    programs = sorted((folder / "bin").iterdir())
    assert {"brig", "brigd", "brig-doctor", "brig-mcp", "monitor", "supervisor", "proxy"} <= {program.name for program in programs}
    for program in programs:
        parts = subprocess.run(["readelf", "-lWd", program], capture_output=True, text=True, check=True).stdout
        assert "INTERP" not in parts and "(NEEDED)" not in parts, program
    (tmp_path / "brig").symlink_to(folder / "bin/brig")
    done = subprocess.run([tmp_path / "brig", *SIX_TIMES_SEVEN], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "42\n"), done
