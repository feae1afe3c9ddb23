"""The attacks of test_layers.py, and what shows from inside that a layer is out. Each answers {way: "ok" or why not}. They change nothing."""
from inside import *

ATTACKS = []


def attack(sentence, *guards):
    """guards: the layers of test_layers.py that stop it, each alone."""
    def register(function):
        ATTACKS.append((sentence, guards, function))
        return function
    return register


@attack("read a file that everybody on the host may read", "mount-ns")
def read_open_file():
    def read(path):
        with open(path) as f:
            assert f.read() == GIVEN["token"]
    return {way: attempt(read, way + GIVEN["open file"]) for way in ("", "/proc/1/root", "/run/proc-3")}


@attack("read a file of root's on the host", "mount-ns", "user-ns")
def read_secret_file():
    return {way: open_as(way + GIVEN["secret file"], os.O_RDONLY) for way in ("", "/proc/1/root", "/run/proc-3")}


@attack("write to a file that everybody on the host may write", "mount-ns", "landlock")
def write_open_file():
    return {way: open_as(way + GIVEN["open file"], os.O_WRONLY) for way in ("", "/proc/1/root", "/run/proc-3")}


@attack("connect to a socket in the host's file tree that everybody may use", "mount-ns")
def connect_by_path():
    def connect(path):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(path)
    return {way: attempt(connect, way + GIVEN["socket"]) for way in ("", "/proc/1/root", "/run/proc-3")}


@attack("change the shared rootfs", "ro-rootfs", "user-ns", "landlock")
def change_rootfs():
    top = "/" if os.path.isdir("/workspace") else GIVEN["folder"] + "/"

    def create(path):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        os.unlink(path)
    return {**{f"create in {name}": attempt(create, f"{top}{name}/brig-layers") for name in ("usr", "etc")},
            "write": open_as(f"{top}etc/passwd", os.O_WRONLY)}


@attack("see a process of the host", "pid-ns", "proc-subset")
def see_process():
    seen = [pid for pid in os.listdir("/proc") if pid.isdigit() and GIVEN["token"] in read_some(f"/proc/{pid}/cmdline", 4096)]
    return {"list": "ok" if seen else "not there", "number": "ok" if GIVEN["token"] in read_some(f"/proc/{GIVEN['pid']}/cmdline", 4096) else "not there"}


@attack("signal a process of the host", "pid-ns", "user-ns", "landlock")
def signal_process():
    return {"kill": attempt(os.kill, GIVEN["pid"], 0)}


@attack("trace a process of the host, or read its memory", "seccomp", "pid-ns", "user-ns")
def trace_process():
    room = ctypes.create_string_buffer(16)
    part = (ctypes.c_void_p * 2)(ctypes.addressof(room), 16)
    return {"attach": "ok" if (r := sc(101, 16, GIVEN["pid"], 0, 0)) == 0 else r,
            "read": r if (r := sc(310, GIVEN["pid"], part, 1, part, 1, 0)) in ("EPERM", "ESRCH") else "ok"} # EFAULT: it was looked for


@attack("signal PID 1 of the jail", "user-ns", "landlock")
def signal_first():
    return {"kill": attempt(os.kill, 1, 0)}


@attack("mount a file system", "seccomp", "no-caps", "user-ns")
def mount_something():
    def answer(r):
        return "ok" if isinstance(r, int) else r
    return {"mount": answer(sc(165, b"none", b"/dev/shm", b"tmpfs", 0, 0)), "open tree": answer(sc(428, -100, b"/", 1)),
            "fsopen": answer(sc(430, b"tmpfs", 0))}


@attack("make a user namespace, and all others in it", "seccomp", "no-nested-ns")
def make_user_namespace():
    return {"unshare": "ok" if (r := in_child(lambda: sc(272, 0x10000000 | 0x20000))) == 0 else str(r)}


@attack("make a mount or network namespace", "seccomp", "no-caps", "no-nested-ns")
def make_namespace():
    return {name: "ok" if (r := in_child(lambda: sc(272, flag))) == 0 else str(r) for name, flag in {"mnt": 0x20000, "net": 0x40000000}.items()}


@attack("load a kernel module, or make the host reboot", "seccomp", "user-ns", "no-caps")
def rule_kernel():
    refused = ("EPERM", "ENOSYS")
    return {"init_module": r if (r := sc(175, b"no module", 9, b"")) in refused else "ok",
            "reboot": r if (r := sc(169, 0, 0, 0, 0)) in refused else "ok"} # numbers that mean nothing


@attack("load a BPF program that watches the kernel", "seccomp", "no-caps")
def load_bpf():
    code = struct.pack("<QQ", 0xb7, 0x95) # r0 = 0; exit
    room, name = ctypes.create_string_buffer(code), ctypes.create_string_buffer(b"GPL")
    order = struct.pack("<IIQQ", 5, 2, ctypes.addressof(room), ctypes.addressof(name)) + bytes(96)
    return {"load": "ok" if isinstance(r := sc(321, 5, order, len(order)), int) else r}


@attack("use io_uring", "seccomp")
def use_ring():
    return {"setup": "ok" if isinstance(r := sc(425, 1, ctypes.create_string_buffer(240)), int) else r}


@attack("reach a TCP service on the host's loopback", "net-ns")
def reach_loopback():
    def connect():
        with socket.create_connection(("127.0.0.1", GIVEN["port"]), 2):
            pass
    return {"connect": attempt(connect)}


@attack("reach an abstract socket of the host", "net-ns", "landlock")
def reach_abstract():
    def connect():
        with socket.socket(socket.AF_UNIX) as s:
            s.connect("\0" + GIVEN["token"])
    return {"connect": attempt(connect)}


@attack("change settings of the kernel in /proc/sys, or trigger it", "proc-subset", "user-ns", "landlock")
def change_settings():
    paths = ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/vm/overcommit_memory", "/proc/sysrq-trigger")
    return {path: open_as(path, os.O_WRONLY) for path in paths}


@attack("read in /proc what the kernel tells of the host", "proc-subset")
def read_settings():
    return {path: open_as(path, os.O_RDONLY) for path in ("/proc/version", "/proc/sys/kernel/ostype", "/proc/loadavg")}


@attack("make a device node, or open one of the host", "seccomp", "user-ns")
def open_device():
    folder = "/workspace" if os.path.isdir("/workspace") else GIVEN["folder"]

    def make():
        os.mknod(f"{folder}/node", stat.S_IFCHR | 0o666, os.makedev(1, 1))
        os.unlink(f"{folder}/node")
    return {"make": attempt(make), **{path: open_as(path, os.O_RDONLY) for path in ("/dev/kmsg", "/dev/mem", "/run/proc-3/dev/kmsg")}}


@attack("find a key of the caller", "seccomp", "own-keyring")
def find_key():
    return {"search": "ok" if isinstance(r := sc(250, 10, -3, b"user", GIVEN["token"].encode(), 0), int) else r}


@attack("attach shared memory of the host", "seccomp", "ipc-ns")
def attach_memory():
    return {"shmget": "ok" if isinstance(r := sc(29, GIVEN["shm"], 1, 0), int) else r}


@attack("rename the host", "seccomp", "user-ns", "no-caps")
def rename_host():
    name = os.uname().nodename.encode()
    return {"sethostname": "ok" if (r := sc(170, name, len(name))) == 0 else r}


@attack("become another user", "seccomp", "no-caps")
def become_other():
    return {"setresuid": r if isinstance(r := in_child(lambda: sc(117, 0, 0, 0)), str) else "ok"}


# --- what shows that a layer is out ---

def status(name):
    return dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)[name]


def same_namespace(kind):
    return os.readlink(f"/proc/self/ns/{kind}") == GIVEN["namespaces"][kind]


def signs():
    return {
        "seccomp": status("Seccomp") == "0",
        "no-caps": int(status("CapEff"), 16) != 0,
        "no-new-privs": status("NoNewPrivs") == "0",
        "user-ns": same_namespace("user"),
        "mount-ns": os.path.exists("/run/proc-3" + GIVEN["open file"]),
        "ro-rootfs": not os.statvfs("/").f_flag & os.ST_RDONLY,
        "proc-subset": os.path.exists("/proc/version"),
        **{f"{kind}-ns": same_namespace(kind) for kind in ("pid", "net", "ipc", "uts")},
    }
