"""The tarball: a folder that needs nothing of the host but its kernel. The gate tries one of this host's static programs, nightly the one that is
released, in trees of other distributions."""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from support import bare, host, minimal, pages

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
    """(a root directory that has nothing, brig's folder in it, its path there): as root unpacks it, in a folder with a space and braces."""
    with tempfile.TemporaryDirectory(prefix="brig-test-") as name: # pytest's own folders are closed to others
        root = pathlib.Path(name)
        root.chmod(0o755)
        folder = root / "a {place}" / here.name
        folder.parent.mkdir()
        with subprocess.Popen(["tar", "-C", here.parent, "--owner=0", "--group=0", "-c", here.name], stdout=subprocess.PIPE) as packed:
            subprocess.run(["tar", "-C", folder.parent, "-xp"], stdin=packed.stdout, check=True)
        yield root, folder, f"/a {{place}}/{here.name}"


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
    assert {one.name for one in root.iterdir()} == {"a {place}", "proc", "sys", "dev", "tmp" if uid else "run"}


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
    named = path.replace("{", r"\{").replace("}", r"\}") + "/bin/brig"
    done = bare.run(root, [f"{path}/bin/brig", "doctor", "--apparmor"], host.HANG)
    assert done.returncode == 0 and f'\nprofile "{named}" flags=(unconfined) {{\n  userns,\n}}\n' in done.stdout, done
    if shutil.which("apparmor_parser"):
        text = done.stdout if os.path.exists("/etc/apparmor.d/abi/4.0") else done.stdout.replace("abi <abi/4.0>", "abi <abi/3.0>").replace("  userns,\n", "")
        parsed = subprocess.run(["apparmor_parser", "--skip-kernel-load", "--skip-cache", "--names"], input=text, capture_output=True, text=True)
        assert (parsed.returncode, parsed.stdout.strip()) == (0, named), parsed


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


@pytest.mark.nightly
def test_on_ubuntus_kernel_the_profile_that_doctor_prints_lets_a_plain_user_run_programs(unpacked):
    """Before it is loaded, the refusal leads to it."""
    if host.read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").strip() != "1":
        pytest.skip("missing kernel feature: kernel.apparmor_restrict_unprivileged_userns, of Ubuntu from 23.10")
    _, folder, _ = unpacked
    user = {"user": 1234, "group": 1234, "extra_groups": [], "capture_output": True, "text": True, "cwd": "/", "env": {}}
    refused = subprocess.run([folder / "bin/brig", *SIX_TIMES_SEVEN], **user)
    advice = subprocess.run([folder / "bin/brig", "doctor"], **user).stdout
    assert refused.returncode == 125 and "doctor --apparmor" in advice, (refused, advice)
    profile = subprocess.run([folder / "bin/brig", "doctor", "--apparmor"], **user).stdout
    subprocess.run(["apparmor_parser", "-r", "--skip-cache"], input=profile, text=True, check=True)
    try:
        done = subprocess.run([folder / "bin/brig", *SIX_TIMES_SEVEN], **user)
        assert (done.returncode, done.stdout) == (0, "42\n"), done
    finally:
        subprocess.run(["apparmor_parser", "-R"], input=profile, text=True, check=True)


# --- the tarball that is released ---

@pytest.fixture(scope="module")
def tarball(needs_root):
    """BRIG_TARBALL: one that is there, as that of a release."""
    return pathlib.Path(os.environ["BRIG_TARBALL"]) if "BRIG_TARBALL" in os.environ else dev("tarball")


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.nightly(seconds=3600)
def test_two_builds_are_the_same_bytes(tarball):
    """The second makes the libraries anew, too."""
    first = sha256(tarball)
    shutil.rmtree(tarball.parent / "lib")
    assert sha256(dev("tarball")) == first


@pytest.fixture(scope="module")
def folder(tarball, tmp_path_factory):
    """What it unpacks to."""
    at = tmp_path_factory.mktemp("unpacked")
    subprocess.run(["tar", "-C", at, "-xpf", tarball], check=True)
    return next(at.iterdir())


PROGRAMS = "brig", "brig-api", "brig-doctor", "brig-mcp", "brig-mcp-http", "brig-mcp-remote", "brig-metrics", "brig-rootfs", "brigd", "monitor", "proxy", "supervisor"


@pytest.mark.nightly(seconds=3600)
def test_it_has_all_programs_and_none_names_a_place_of_its_builder_or_a_library_of_the_host(folder):
    assert sorted(path.name for path in (folder / "bin").iterdir()) == sorted(PROGRAMS)
    for name in PROGRAMS:
        parts = subprocess.run(["readelf", "-lWd", folder / "bin" / name], capture_output=True, text=True, check=True).stdout
        assert "INTERP" not in parts and "(NEEDED)" not in parts, name
        code = (folder / "bin" / name).read_bytes()
        assert [word for word in (b"/usr/local/share/brig", b"/usr/local/libexec", b"/usr/local/sbin", b"/workspace/source/", bytes(ROOT), b"libnss_") if word in code] == [], name


@pytest.mark.nightly(seconds=3600)
def test_a_program_that_was_copied_out_of_it_says_what_to_do(folder, tmp_path):
    shutil.copy(folder / "bin/brig", tmp_path / "brig")
    done = subprocess.run([tmp_path / "brig", *SIX_TIMES_SEVEN], capture_output=True, text=True)
    assert done.returncode != 0 and "ln -s FOLDER/bin/brig" in done.stderr, done


@pytest.mark.nightly(seconds=3600)
def test_nothing_in_it_is_closed_or_belongs_to_a_builder(tarball, folder):
    listed = subprocess.run(["tar", "--numeric-owner", "-tvf", tarball], capture_output=True, text=True, check=True).stdout.splitlines()
    assert {line.split()[1] for line in listed} == {"0/0"}
    assert [line for line in listed if line[0] not in "dl-" or (line[0] != "l" and (line[7] != "r" or line[8] == "w" or "s" in line[:10]))] == []
    assert subprocess.run([folder / "bin/brig", "rootfs", "verify", "basic"], capture_output=True).returncode == 0


UBUNTU = "http://archive.ubuntu.com/ubuntu"
UBUNTU_KEYS = f"{UBUNTU}/pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb", "36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8"


def ubuntu(folder):
    """The line for apt of Ubuntu 24.04, signed by the key that is pinned here."""
    address, digest = UBUNTU_KEYS
    got = subprocess.run(["curl", "-sS", "--fail", "--max-time", "60", "-o", folder / "keys.deb", address], capture_output=True, text=True)
    if got.returncode != 0:
        pytest.skip(f"missing network: Ubuntu's archive ({got.stderr.strip()})")
    assert sha256(folder / "keys.deb") == digest
    subprocess.run(["dpkg-deb", "-x", folder / "keys.deb", folder / "keys"], check=True)
    return f"deb [signed-by={folder}/keys/usr/share/keyrings/ubuntu-archive-keyring.gpg] {UBUNTU} noble main"


@pytest.fixture(scope="module", params=["bullseye", "bookworm", "trixie", "noble"])
def distribution(request, tmp_path_factory, needs_root):
    """A minimal tree of Debian 11, 12 or 13, or of Ubuntu 24.04 where its archive answers."""
    folder = tmp_path_factory.mktemp(request.param)
    minimal.make(folder / "tree", "minbase", suite=request.param, mirror=[ubuntu(folder)] if request.param == "noble" else [])
    yield folder / "tree"
    shutil.rmtree(folder)


USERS = {"root": "", "a plain user": "HOME=/nonexistent setpriv --reuid=1234 --regid=1234 --clear-groups"}


@pytest.mark.nightly(seconds=3600)
@pytest.mark.parametrize("user", USERS)
def test_the_examples_of_the_readme_work_literally(folder, distribution, user, tmp_path):
    """From a folder with a space in its path, and but for data science, whose tree is not in it."""
    place = distribution / "opt/a place"
    if not place.exists():
        place.mkdir()
        subprocess.run(["cp", "-a", folder, place], check=True)
    path = f"/opt/a place/{folder.name}"
    script = f'export PATH="{path}/bin:/usr/sbin:/usr/bin:/sbin:/bin" HOME=/root; cd "{path}"\n' + pages.script(folder / "README.md", USERS[user], ["data-science"])
    done = minimal.run(distribution, tmp_path, script, host.HANG * 10)
    assert (done.returncode, done.stdout) == (0, "all of them\n"), done


@pytest.mark.nightly(seconds=3600)
@pytest.mark.parametrize("uid", [0, 1234], ids=["root", "a plain user"])
def test_busybox_alone_unpacks_and_runs_it(tarball, uid, tmp_path, needs_root):
    """busybox has no zstd: another host decompresses for it."""
    with tempfile.TemporaryDirectory(prefix="brig-test-") as name:
        tree = pathlib.Path(name) / "tree"
        minimal.make(tree, "extract", ["busybox-static"])
        tree.parent.chmod(0o755)
        (tree / "tmp").mkdir(exist_ok=True)
        (tree / "tmp").chmod(0o1777)
        subprocess.run(["zstd", "-q", "-d", tarball, "-o", tree / "tmp/brig.tar"], check=True)
        script = "cd /tmp; /bin/busybox tar xpf brig.tar && brig-*/bin/brig run -q -c 'print(6 * 7)'"
        done = bare.run(tree, ["/bin/busybox", "sh", "-c", script], host.HANG, uid=uid)
        assert (done.returncode, done.stdout, done.stderr) == (0, "42\n", ""), done


# --- the OCI image ---

DOCKER = "CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP NET_BIND_SERVICE SYS_CHROOT KILL AUDIT_WRITE".split()
# crun starts nothing where both versions of control groups have controllers.
VERSION_2 = "unshare", "--mount", "sh", "-c", 'mount -t cgroup2 none /sys/fs/cgroup && exec "$@"', "sh"


@pytest.fixture(scope="module")
def image(needs_root):
    return dev("image")


@pytest.mark.nightly(seconds=3600)
@pytest.mark.parametrize("uid", [0, 1000], ids=["root", "a plain user"])
def test_the_image_runs_a_program_with_the_options_of_the_page_and_says_what_is_missing_without(image, uid, tmp_path):
    """Its blobs are what their names say. crun gets what podman writes for these options: no filter, nothing of /proc masked."""
    if host.lacks("tool:crun"):
        pytest.skip(host.lacks("tool:crun"))
    blobs = image / "blobs/sha256"
    assert all(sha256(blob) == blob.name for blob in blobs.iterdir())
    read = lambda descriptor: json.loads((blobs / descriptor["digest"].removeprefix("sha256:")).read_text())
    manifest = read(json.loads((image / "index.json").read_text())["manifests"][0])
    settings = read(manifest["config"])["config"]
    (tmp_path / "rootfs").mkdir()
    subprocess.run(["tar", "-C", tmp_path / "rootfs", "-xpzf", blobs / manifest["layers"][0]["digest"].removeprefix("sha256:")], check=True)
    assert {path.name for path in (tmp_path / "rootfs/opt").iterdir()} == {"brig"}
    answers = {}
    for unmask in (True, False):
        subprocess.run(["crun", "spec"], cwd=tmp_path, check=True)
        config = json.loads((tmp_path / "config.json").read_text())
        held = [f"CAP_{cap}" for cap in DOCKER] if uid == 0 else []
        config["process"].update(terminal=False, args=settings["Entrypoint"] + SIX_TIMES_SEVEN, cwd=settings["WorkingDir"], env=settings["Env"],
                                 user={"uid": uid, "gid": uid}, noNewPrivileges=False, capabilities={kind: held for kind in ("bounding", "effective", "permitted")})
        config["root"] = {"path": "rootfs", "readonly": False}
        if unmask:
            config["linux"].update(maskedPaths=[], readonlyPaths=[])
        (tmp_path / "config.json").write_text(json.dumps(config))
        argv = ["crun", "--cgroup-manager=disabled", "--root", tmp_path / "state", "run", f"brig-{uid}-{unmask}"]
        answers[unmask] = subprocess.run([*VERSION_2, *argv], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=host.HANG * 10)
        (tmp_path / "config.json").unlink()
    assert (answers[True].returncode, answers[True].stdout) == (0, "42\n"), answers
    assert answers[False].returncode == 125 and "brig doctor" in answers[False].stderr, answers
