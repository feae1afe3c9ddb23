"""The disks of a guest: Debian's packages, made once and kept under build/vm; and this tree, made anew for each boot."""
import hashlib
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import tempfile

from support import host

REPO = host.REPO
HERE = pathlib.Path(__file__).resolve().parent
FILES = HERE / "guest"  # laid over the packages' files
SUITE = os.environ.get("BRIG_VM_SUITE", host.debian()) # of the guests whose boot names none
KERNEL = "linux-image-cloud-amd64"
PACKAGES = """systemd-sysv dbus dbus-user-session libpam-systemd uidmap python3 python3-pytest python3-jsonschema
              iproute2 procps util-linux libcap2-bin strace kmod libmicrohttpd12 libarchive13 systemd-container crun
              openssl ca-certificates nginx haproxy dnsmasq-base fcgiwrap git curl python3-websockets""".split()
RENAMED = {"bookworm": {}, "trixie": {"libmicrohttpd12": "libmicrohttpd12t64", "libarchive13": "libarchive13t64"}}
ADDED = {"bookworm": [], "trixie": ["apparmor", "libcgroup3"]} # AppArmor decides about user namespaces there; what was built there has libcgroup shared
SIZE = "2G"
UNUSED = ["/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*"]
TREE = ["tests", "profiles", "examples", "recipes", "README.md", "dev", "man", "pytest.ini", "jail", "common", "rootfs-builder",
        "CMakeLists.txt", "docs", "python"]

# Done to the packages' tree: $1. The kernel is only unpacked: its scripts would make an initramfs that nobody needs.
FURNISH = r"""
set -eu
cd "$1"
mkdir brig boot/deb
(cd boot/deb && APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-get -q download "$(APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-cache depends KERNEL |
    sed -n 's/.*Depends: \(linux-image-[^ ]*\).*/\1/p')")
dpkg-deb --fsys-tarfile boot/deb/*.deb | tar -x --wildcards './boot/vmlinuz-*' '*/lib/modules/*'
rm -r boot/deb
depmod -b . "$(ls lib/modules)" 2>/dev/null || chroot . depmod "$(ls lib/modules)"
chroot . useradd -m -s /bin/bash plain
chroot . useradd -m -s /bin/bash bare
for file in etc/subuid etc/subgid; do echo plain:100000:65536 >$file; done
rm -f etc/systemd/system/*.wants/nginx.service etc/systemd/system/*.wants/haproxy.service etc/systemd/system/*.wants/fcgiwrap.* # tests start them
passwd='s/^root:[^:]*:/root::/'
sed -i "$passwd" etc/shadow
tar -C FILES --mode=u=rwX,go=rX -c . | tar -x --no-overwrite-dir # a checkout under umask 077 would close / and /usr
chown -R 0:0 etc usr/lib/brig-guest
: >etc/machine-id
: >etc/fstab
echo guest >etc/hostname
echo '127.0.0.1 localhost guest' >etc/hosts
""".replace("KERNEL", KERNEL)


def packages(suite):
    return [RENAMED[suite].get(name, name) for name in PACKAGES] + ADDED[suite]


def key(suite):
    """Of what the base is made of: another recipe is another base."""
    text = [repr((suite, KERNEL, packages(suite), UNUSED, FURNISH, SIZE)).encode()]
    for path in sorted(FILES.rglob("*")):
        text += [str(path.relative_to(FILES)).encode(), path.read_bytes() if path.is_file() else b""]
    return hashlib.sha256(b"\0".join(text)).hexdigest()[:16]


def base(suite=SUITE):
    """(kernel, disk) of the guest without this tree; made when it is not there."""
    kept = host.build_dir() / "vm"
    folder = kept / f"{'base' if suite == 'bookworm' else suite}-{key(suite)}"
    if not folder.exists():
        kept.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept, prefix="new-") as new:
            make_base(pathlib.Path(new), suite)
            shutil.rmtree(folder, ignore_errors=True)
            os.rename(pathlib.Path(new) / "base", folder)
        for old in kept.glob(f"{folder.name.split('-')[0]}-*"):
            if old != folder:
                shutil.rmtree(old)
    return folder / "vmlinuz", folder / "disk"


def make_base(new, suite):
    tree, done = new / "tree", new / "base"
    done.mkdir()
    settings = new / "apt.conf"
    settings.write_text(ask("apt-config", "dump", "Acquire::http") + ask("apt-config", "dump", "Acquire::https"))
    (new / "furnish").write_text(FURNISH.replace("FILES", shlex.quote(str(FILES))))
    run("mmdebstrap", "--mode=root", "--variant=minbase", "--format=directory", f"--include={','.join(packages(suite))}",
        f"--aptopt={settings}", *[f"--dpkgopt=path-exclude={path}" for path in UNUSED],
        f"--customize-hook=sh {shlex.quote(str(new / 'furnish'))} \"$1\"", suite, tree, *sources(suite))
    shutil.move(next((tree / "boot").glob("vmlinuz-*")), done / "vmlinuz")
    make_disk(tree, done / "disk", SIZE)


def sources(suite):
    """What this machine's apt knows of Debian; nothing, so mmdebstrap's own guess, when it knows nothing."""
    lines = ask("apt-get", "indextargets", "--format", "deb $(REPO_URI) $(RELEASE) $(COMPONENT)",
                "Created-By: Packages", "Origin: Debian", "Component: main").splitlines()
    return sorted({line for line in lines if line.split()[2].startswith(suite)})


def tree_disk(disk, order, trees, build=None, files=()):
    """This tree as it is now: what was built, also as it is installed, these of the rootfs store, these files, the tests; and what the guest is to do with it."""
    build = build or host.build_dir()
    with tempfile.TemporaryDirectory(dir=disk.parent) as new:
        for name in TREE:
            run("cp", "-a", REPO / name, new)
        (pathlib.Path(new) / "build").mkdir()
        for name in ("bin", "tests", "man", "brig.mark", "CMakeCache.txt"):
            if (build / name).exists():
                run("cp", "-a", build / name, pathlib.Path(new) / "build")
        run("cmake", "--install", build, env={"DESTDIR": pathlib.Path(new) / "installed"})
        for path in (REPO / "build/deb").glob("*_*.deb"): # when ./dev deb has made them, for tests/release/test_in_guest.py
            if "dbgsym" not in path.name:
                (pathlib.Path(new) / "build/deb").mkdir(exist_ok=True)
                run("cp", path, pathlib.Path(new) / "build/deb")
        for path in files:
            run("cp", path, new)
        for name in trees:
            host.copy_rootfs(name, pathlib.Path(new) / "build" / "store")
        for name, place in (("profiles", "profiles"), ("recipes", "recipes"), ("guest", "jail/guest")):
            (pathlib.Path(new) / "build" / name).symlink_to(f"../{place}")
        (pathlib.Path(new) / "order.json").write_text(json.dumps(order))
        run("chmod", "-R", "a+rX", *[pathlib.Path(new) / name for name in TREE if name != "build"])
        os.chmod(new, 0o755)
        make_disk(new, disk, "512M" if len(trees) == 1 else "1G")


def make_disk(tree, disk, size):
    run("mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-d", tree, disk, size)


def ask(*argv):
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def run(*argv, env=None):
    done = subprocess.run(list(map(str, argv)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          umask=0o022, env={**os.environ, "LC_ALL": "C.UTF-8", **(env or {})})
    if done.returncode:
        raise RuntimeError(f"{argv[0]}: status {done.returncode}\n{done.stdout[-3000:]}")
