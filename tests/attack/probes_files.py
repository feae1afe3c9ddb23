"""Section B: the file tree that the program sees."""
from inside import *
from outside import equals, none_of, only, probe, values

SMALL = ("--tmp-size", "8M", "--workspace-size", "16M")
FEW = ("--inodes", "64")


@probe("B1", "nothing can be created, removed or changed in the root", jail=only("EROFS", "EPERM", "EACCES"), free=only("ok"))
def write_root():
    library = os.path.dirname(os.__file__)

    def create(folder):
        os.close(os.open(f"{folder}/brig-probe", os.O_CREAT | os.O_WRONLY, 0o644))
    out = {f"create in {d}": attempt(create, d) for d in ("/", "/usr", "/etc", "/lib", library, "/proc/self/root/usr")}
    out["unlink"] = attempt(os.unlink, f"{library}/this.py")
    out["chmod"] = attempt(os.chmod, f"{library}/os.py", 0o777)
    out["utime"] = attempt(os.utime, "/etc")
    out["rename"] = attempt(os.rename, f"{library}/abc.py", f"{library}/cba.py")
    out["append"] = open_as(f"{library}/os.py", os.O_WRONLY | os.O_APPEND)
    return out


@probe("B1", "every mount but the writable places is read-only, and all are nosuid and nodev",
       jail=lambda r: r and r["weak"] == [], free=lambda r: len(r["weak"]) > 3)
def mount_options():
    own, weak = ("/tmp", "/dev/shm", "/workspace"), []
    for line in open("/proc/self/mountinfo"):
        fields = line.split()
        where, options = fields[4], fields[5].split(",")
        missing = {"nosuid"} | (set() if where in own or where.startswith("/proc") else {"ro"})
        # device nodes come as mounts of single files, which cannot be nodev
        missing |= set() if where.startswith("/dev/") and where != "/dev/shm" else {"nodev"}
        if missing - set(options):
            weak.append([where, fields[5]])
    return {"weak": weak}


@probe("B2", "files of the host are not found by any path", where="scratch", jail=only([]), free=lambda r: all(values(r)))
def host_files():
    places = GIVEN["canaries"]
    ways = {"plain": "{}", "up": "/workspace/" + "../" * 64 + "{}", "process 1": "/proc/1/root{}", "own root": "/proc/self/root{}",
            "own cwd": "/proc/self/cwd/" + "../" * 64 + "{}"}
    found = {way: [p for p in places if os.path.exists(form.format(p))] for way, form in ways.items()}
    found.pop("up") if not os.path.exists("/workspace") else None # a way that only a jail has
    return found


@probe("B2", "no file anywhere in the tree has a canary's name", jail=equals([]), free=lambda r: len(r) > 0)
def walk_for_canaries():
    found, skip = [], ("/proc", "/sys", "/dev")
    for folder, folders, files in os.walk("/" if os.path.isdir("/workspace") else os.path.dirname(GIVEN["canaries"][0])):
        folders[:] = [d for d in folders if os.path.join(folder, d) not in skip]
        found += [os.path.join(folder, f) for f in files + folders if GIVEN["token"] in f]
    return found


@probe("B2", "no socket, state or home of the host is there", where="scratch", jail=equals([]), free=lambda r: len(r) > 2)
def host_places():
    places = ["/var/run/docker.sock", "/run/systemd", "/run/brig", "/run/user", "/boot", "/var/lib/dpkg", "/var/log/dpkg.log", "/etc/shadow",
              "/etc/machine-id", "/root/.bashrc", "/etc/ssh", "/etc/fstab", "/usr/bin/apt", "/usr/bin/gcc", "/sys/kernel", "/sys/fs"]
    return [p for p in places if os.path.exists(p)]


@probe("B8", "no file of the rootfs is set-uid, set-gid or has capabilities", jail=equals([]), free=lambda r: len(r) > 0)
def suid_files():
    found = []
    for folder, folders, files in os.walk("/usr"):
        for name in files:
            path = os.path.join(folder, name)
            try:
                if os.lstat(path).st_mode & 0o6000 or "security.capability" in os.listxattr(path, follow_symlinks=False):
                    found.append(path)
            except OSError:
                pass
    return found[:10]


@probe("B8", "a set-uid copy runs as the same user", where="user", jail=lambda r: r["before"] == r["after"],
       why="that the copy would change the user needs a second user inside; nosuid is checked under B1")
def suid_copy():
    import shutil
    shutil.copy(os.path.realpath(sys.executable), "/workspace/copy" if os.path.isdir("/workspace") else "/tmp/brig-suid-copy")
    path = "/workspace/copy" if os.path.isdir("/workspace") else "/tmp/brig-suid-copy"
    os.chmod(path, 0o6755)
    done = subprocess.run([path, "-c", "import os; print(os.geteuid())"], capture_output=True, text=True)
    os.unlink(path)
    return {"before": str(os.geteuid()), "after": done.stdout.strip() or str(os.geteuid()), "stderr": done.stderr[-200:]}


@probe("B9", "no device node can be made", jail=only("EPERM", "EACCES", "EROFS"), free=only("ok"))
def make_devices():
    out = {}
    for folder in ("/tmp", "/dev/shm", "/workspace" if os.path.isdir("/workspace") else "/var"):
        for kind, bits in (("char", stat.S_IFCHR), ("block", stat.S_IFBLK)):
            path = f"{folder}/node-{kind}"
            out[f"{kind} in {folder}"] = attempt(os.mknod, path, bits | 0o666, os.makedev(1, 3))
    return out


@probe("B9", "only the harmless devices can be opened",
       jail=lambda r: set(r["there"]) <= {"null", "zero", "full", "random", "urandom", "tty", "shm", "fd", "stdin", "stdout", "stderr",
                                          "ptmx", "pts"} and r["opened"] == [],
       free=lambda r: "mem" in r["there"] or "kmsg" in r["there"])
def open_devices():
    names = ("mem", "kmem", "kmsg", "port", "fuse", "kvm", "net/tun", "vsock", "loop-control", "mapper/control", "sda", "vda", "console")
    return {"there": os.listdir("/dev"), "opened": [n for n in names if open_as(f"/dev/{n}", os.O_RDONLY) == "ok"]}


@probe("B10", "a program written to /tmp or /dev/shm is not executed", jail=only("EACCES", "EPERM"), free=only("ok"))
def exec_written():
    out = {}
    for folder in ("/tmp", "/dev/shm"):
        path = f"{folder}/copy-of-python"
        with open(os.path.realpath(sys.executable), "rb") as f, open(path, "wb") as g:
            g.write(f.read())
        os.chmod(path, 0o755)
        out[folder] = attempt(subprocess.run, [path, "-c", "pass"], check=True)
        os.unlink(path)
    return out


@probe("B10", "code in a file of /tmp is not mapped executable", jail=only("EPERM", "EACCES"), free=only("ok"))
def map_written():
    import mmap

    def doing(folder):
        with open(f"{folder}/code", "wb+") as f:
            f.write(b"\xc3" * 4096)
            f.flush()
            mmap.mmap(f.fileno(), 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC).close()
    return {folder: attempt(doing, folder) for folder in ("/tmp", "/dev/shm")}


@probe("B11", "neither a whiteout nor an attribute of overlay can be made", jail=only("EPERM", "ENOTSUP", "EOPNOTSUPP", "EROFS"),
       free=lambda r: r["whiteout"] == "ok" and r["trusted"] == "ok")
def overlay_tricks():
    place = "/workspace" if os.path.isdir("/workspace") else "/dev/shm"
    os.mkdir(f"{place}/overlay")
    out = {"whiteout": attempt(os.mknod, f"{place}/overlay/gone", stat.S_IFCHR | 0o666, 0)}
    for name in ("trusted.overlay.opaque", "trusted.overlay.redirect", "user.overlay.whiteout"):
        out[name.split(".")[0]] = attempt(os.setxattr, f"{place}/overlay", name, b"y")
    return out


@probe("B12", "each writable place ends at its size", options=SMALL, free=lambda r: all(e == "ok" for _, e in values(r)),
       jail=lambda r: r["/tmp"][1] == r["/dev/shm"][1] == r["/workspace"][1] == "ENOSPC" and r["/tmp"][0] <= 8 and
       r["/dev/shm"][0] <= 8 and r["/workspace"][0] <= 16)
def fill_places():
    out, chunk = {}, b"x" * (1 << 20)
    for folder in ("/tmp", "/dev/shm", "/workspace" if os.path.isdir("/workspace") else "/var"):
        written, end = 0, "ok"
        with open(f"{folder}/fill", "wb", buffering=0) as f:
            while written < 32:
                end = attempt(f.write, chunk)
                if end != "ok" or f.tell() < (written + 1) << 20: # a short write: full
                    end = "ENOSPC" if end == "ok" else end
                    break
                written += 1
        os.unlink(f"{folder}/fill")
        out[folder] = [written, end]
    return out


@probe("B15", "no file of the rootfs gets a second name in a writable place", jail=only("EXDEV", "EROFS", "EPERM"), free=only("ok"))
def hard_links():
    python, out = os.path.realpath(sys.executable), {}
    # outside the scratch copy is one file system, as hosts often are
    for place in ("/workspace", "/tmp", "/dev/shm") if os.path.isdir("/workspace") else ("/usr", "/var"):
        out[place] = attempt(os.link, python, f"{place}/link-to-python")
    return out


@probe("B13", "each writable place ends at its number of files", options=FEW, free=lambda r: all(e == "ok" for _, e in values(r)),
       jail=lambda r: all(e == "ENOSPC" and n <= 64 for n, e in values(r)))
def many_files():
    out = {}
    for folder in ("/tmp", "/dev/shm", "/workspace" if os.path.isdir("/workspace") else "/var"):
        end, count = "ok", 0
        while end == "ok" and count < 500:
            end = attempt(os.mkdir, f"{folder}/dir-{count}")
            count += end == "ok"
        out[folder] = [count, end]
    return out


@probe("F2", "there is no socket anywhere in the tree", jail=equals([]), free=lambda r: len(r) > 0)
def sockets_in_the_tree():
    found = []
    for top in ("/",) if os.path.isdir("/workspace") else (os.path.dirname(GIVEN["canaries"][0]),):
        for folder, folders, files in os.walk(top):
            folders[:] = [d for d in folders if os.path.join(folder, d) != "/proc"]
            for name in files:
                try:
                    if stat.S_ISSOCK(os.lstat(os.path.join(folder, name)).st_mode):
                        found.append(os.path.join(folder, name))
                except OSError:
                    pass
    return found
