"""Sections C, D (what a probe can see of them), G and H: kernel interfaces, network, identity."""
from inside import *
from outside import equals, none_of, none_ok, only, probe, values
from support import host


@probe("C1", "no file of /proc/sys and no trigger opens for writing", jail=equals([]),
       free=lambda r: "/proc/sys/kernel/core_pattern" in r)
def kernel_settings():
    paths = ["/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/fs/binfmt_misc/register",
             "/proc/irq/0/smp_affinity", "/proc/irq/default_smp_affinity", "/proc/bus/pci/00/00.0", "/proc/mtrr", "/proc/acpi/wakeup"]
    for folder, _, files in os.walk("/proc/sys"):
        paths += [os.path.join(folder, f) for f in files]
    return [p for p in paths if open_as(p, os.O_WRONLY) == "ok"][:20]


@probe("C2", "kernel memory, symbols, keys and timers cannot be read", jail=equals([]), free=lambda r: len(r) > 3)
def kernel_secrets():
    names = ("kcore", "kallsyms", "kmsg", "keys", "key-users", "sched_debug", "timer_list", "slabinfo", "pressure/memory", "iomem",
             "vmallocinfo", "modules", "cmdline", "config.gz", "interrupts", "version", "cpuinfo", "meminfo", "uptime", "loadavg",
             "partitions", "diskstats", "mounts/../../net/tcp", "swaps", "buddyinfo", "zoneinfo", "vmstat", "cgroups")
    return [n for n in names if open_as(f"/proc/{n}", os.O_RDONLY) == "ok"]


@probe("C3", "only the program's own processes are in /proc", where="root", free=lambda r: r["others"] != [], jail=lambda r: r["others"] == [])
def other_processes():
    own = {os.getpid(), os.getppid()}
    return {"others": sorted(int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) not in own), "own": sorted(own)}


@probe("C3", "no process above the program can be looked at by its number", where="root", free=lambda r: r != [], jail=equals([]))
def processes_by_number():
    own = {os.getpid(), os.getppid()}
    return [p for p in range(1, 400) if p not in own and os.path.exists(f"/proc/{p}/status")]


@probe("C4", "process 1 shows nothing of itself", jail=lambda r: all(v in ("EACCES", "EPERM", "ENOENT", "") for v in values(r)),
       free=none_of("EACCES", "ENOENT"))
def process_one():
    def first(path):
        text = read_some(path)
        return text[6:] if text.startswith("errno ") else ("content" if text else "")
    out = {n: first(f"/proc/1/{n}") for n in ("environ", "cmdline", "maps", "task/1/environ")}
    out["exe"] = open_as("/proc/1/exe", os.O_RDONLY)
    out["fd"] = attempt(os.listdir, "/proc/1/fd")
    out["mem"] = open_as("/proc/1/mem", os.O_RDWR)
    out["root"] = attempt(os.listdir, "/proc/1/root")
    return out


@probe("C5", "no control group is mounted, and none can be", jail=lambda r: r["mounted"] == [] and r["mount"] == "EPERM" and r["found"] == [],
       free=lambda r: r["mount"] == "ok" and r["procs"] == "ok")
def control_groups():
    mounted = [line.split()[4] for line in open("/proc/self/mountinfo") if " cgroup" in line]
    import tempfile
    target = tempfile.mkdtemp()

    def mount():
        ctypes.set_errno(0)
        for kind, data in ((b"cgroup", b"memory"), (b"cgroup2", None)):
            if libc.mount(b"none", target.encode(), kind, 0, data) == 0:
                return
        raise OSError(ctypes.get_errno(), "mount")
    made = attempt(mount)
    procs = open_as(f"{target}/cgroup.procs", os.O_WRONLY)
    if made == "ok":
        libc.umount2(target.encode(), 2)
    os.rmdir(target)
    places = [p for p in ("/sys/fs/cgroup", "/cgroup", "/run/cgroup", "/dev/cgroup") if os.path.exists(p)]
    return {"mounted": mounted, "mount": made, "procs": procs, "found": places}


@probe("C5", "the program sees its control group as the root of all", where="root",
       jail=lambda r: all(path in ("/", "/payload") for path in values(r)), why="what is seen outside depends on the host")
def own_cgroup():
    text = read_some("/proc/self/cgroup", 4096)
    return {"none": "/"} if text.startswith("errno") else {line.split(":")[1]: line.split(":", 2)[2] for line in text.splitlines()}


@probe("C6", "/sys is not there, but for a number of CPUs that belongs to the rootfs", jail=equals(["/sys/devices/system/cpu/online"]), free=lambda r: len(r) > 100)
def sys_there():
    return [os.path.join(folder, name) for folder, _, names in os.walk("/sys") for name in names]


@probe("C7", "the kernel log cannot be read", where="root", jail=only("EPERM", "ENOSYS", "ENOENT", "EACCES"), free=lambda r: isinstance(r["syslog"], int))
def kernel_log():
    buffer = ctypes.create_string_buffer(4096)
    return {"syslog": sc(103, 3, buffer, 4096), "size": sc(103, 10, 0, 0), "kmsg": open_as("/dev/kmsg", os.O_RDONLY)}


@probe("C8", "no file system of the kernel's insides is there", jail=equals([]), free=lambda r: len(r) > 2)
def kernel_trees():
    return [p for p in ("/sys/kernel/security", "/sys/kernel/debug", "/sys/kernel/tracing", "/sys/fs/bpf", "/sys/kernel/config",
                        "/sys/firmware/efi/efivars", "/sys/fs/fuse/connections", "/sys/fs/cgroup", "/proc/fs", "/dev/hugepages",
                        "/dev/mqueue")
            if os.path.exists(p)]


@probe("C9", "settings of the host's network, IPC and kernel are not told", jail=equals([]), free=lambda r: len(r) > 3)
def settings_told():
    names = ("net/ipv4/ip_local_port_range", "net/core/somaxconn", "net/ipv4/tcp_congestion_control", "net/unix/max_dgram_qlen",
             "kernel/shmmax", "kernel/msgmax", "kernel/random/boot_id", "kernel/hostname", "kernel/osrelease", "fs/file-nr", "vm/overcommit_memory")
    return [n for n in names if not read_some(f"/proc/sys/{n}").startswith("errno ")]


@probe("C10", "handles, ioctls and lists of namespaces and processes are refused", where="root",
       jail=only("EPERM", "ENOTTY", "ENOSYS"), free=lambda r: isinstance(r["type"], int) and isinstance(r["owner"], int))
def namespace_handles():
    net, me = os.open("/proc/self/ns/net", os.O_RDONLY), os.pidfd_open(os.getpid())
    handle, number, info = ctypes.create_string_buffer(b"\x80" + bytes(200)), ctypes.c_int(), ctypes.create_string_buffer(128)
    requests = {"type": 0xb703, "owner": 0xb701, "parent": 0xb702, "id": 0x8008b70d, "mounts": 0x8008b705}
    return {**{name: sc(16, net, request, info) for name, request in requests.items()},
            "handle": sc(303, -100, b"/proc/self/ns/net", handle, ctypes.byref(number), 0), "open by handle": sc(304, net, handle, 0),
            "handle of a process": sc(303, me, b"", handle, ctypes.byref(number), 0x1000), "info": sc(16, me, 0xc040ff0b, info),
            "namespace of a process": sc(16, me, 0xff05, 0), "list": sc(470, info, info, 1, 0), "enter": sc(308, me, 0x40000000)}


@probe("C11", "the list of mounts names no path of the host but the store's", where="root", # a mount of a folder tells the folder
       jail=lambda r: [line.split()[0] for line in r if line.count("/") > 1 and not line.split()[0].endswith("/tree")
                       and line.split()[0] not in ("/null", "/zero", "/full", "/random", "/urandom")] == [],
       free=lambda r: any(line.count("/") > 1 for line in r))
def mount_paths():
    return [" ".join(line.split()[3:4] + line.split(" - ")[1].split()[1:]) for line in open("/proc/self/mountinfo")]


@probe("C12", "calls tell of the host's clock, load and disk, and of no process, name or path", where="root",
       jail=lambda r: r["node"] == "brig" and r["boot id"].startswith("errno ") and not r["path"],
       free=lambda r: r["node"] != "brig" and r["path"])
def told_by_calls():
    return {"node": os.uname().nodename, "boot id": read_some("/proc/sys/kernel/random/boot_id"),
            "path": os.path.exists(GIVEN["canaries"][0]), "disk": os.statvfs("/").f_bfree, "load": sc(99, ctypes.create_string_buffer(256))}


@probe("D2", "no signal reaches process 1, not even where it has the program's own user", where="root",
       jail=lambda r: r == "EPERM" or (r == "ok" and host.landlock_abi() < 6), free=equals("ok"))
def signal_to_one():
    return attempt(os.kill, 1, 0)


@probe("D11", "the out-of-memory score is not negative and cannot be", where="root", jail=lambda r: r["score"] >= 0 and r["write"] != "ok",
       why="lowering it outside needs CAP_SYS_RESOURCE, which CI machines seldom give")
def oom_score():
    def lower():
        with open("/proc/self/oom_score_adj", "w") as f:
            f.write("-900")
    return {"score": int(open("/proc/self/oom_score_adj").read()), "write": attempt(lower)}


@probe("D12", "neither real time nor a better nice value can be had", where="root", jail=only("EPERM", "EACCES", "ENOSYS"), free=only("ok"))
def priority():
    return {"fifo": attempt(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))), "nice": attempt(os.nice, -5)}


@probe("G1", "no address can be reached, by TCP or UDP, v4 or v6", jail=lambda r: all(v in ("ENETUNREACH", "EADDRNOTAVAIL", "EPERM", "EACCES") for v in values(r)),
       free=lambda r: r["tcp 192.0.2.1"] in ("EINPROGRESS", "ok", "ECONNREFUSED") and r["udp 192.0.2.1"] == "ok")
def reach_out():
    def connect(family, kind, address):
        with socket.socket(family, kind) as s:
            s.setblocking(False)
            s.connect((address, 53))
    out = {}
    for address in ("192.0.2.1", "198.51.100.7", "169.254.169.254", "2001:db8::1", "fd00:ec2::254"):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        out[f"tcp {address}"] = attempt(connect, family, socket.SOCK_STREAM, address)
        out[f"udp {address}"] = attempt(connect, family, socket.SOCK_DGRAM, address)
    return out


@probe("G1", "lo is the only interface and carries packets", jail=lambda r: r["names"] in (["lo"], "EPERM", "EAFNOSUPPORT") and r["loopback"] == "ok",
       where="root", why="what interfaces the host has is not ours to say; the first G1 row has a control")
def interfaces():
    def echo():
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname(), 2) as a:
            b, _ = server.accept()
            a.sendall(b"x")
            assert b.recv(1) == b"x"
            b.close()
    try:
        names = [name for _, name in socket.if_nameindex()]
    except OSError as e:
        names = name_of(e.errno)
    return {"names": names, "loopback": attempt(echo)}


@probe("G1", "names are not resolved", where="root", jail=equals("gaierror"), why="a look-up outside would leave the machine")
def resolve():
    try:
        socket.getaddrinfo("brig-probe.invalid", 80)
    except socket.gaierror:
        return "gaierror"
    return "resolved"


@probe("G2", "what listens on the host's loopback or as an abstract socket is not there", where="root",
       jail=only("ECONNREFUSED", "ENETUNREACH", "EADDRNOTAVAIL"), free=only("ok"))
def host_loopback():
    def connect(family, address):
        with socket.socket(family, socket.SOCK_STREAM) as s:
            s.settimeout(2)
            s.connect(address)
    return {"v4": attempt(connect, socket.AF_INET, ("127.0.0.1", GIVEN["port"])),
            "abstract": attempt(connect, socket.AF_UNIX, "\0" + GIVEN["token"])}


@probe("G3", "no metadata service of any cloud is reachable, however it is written",
       jail=only("ENETUNREACH", "EADDRNOTAVAIL"), free=lambda r: r["169.254.169.254"] in ("EINPROGRESS", "ok", "ECONNREFUSED"))
def metadata_services():
    addresses = ("169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254",
                 "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe")

    def connect(address):
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as s:
            s.setblocking(False)
            s.connect((address, 80))
    return {address: attempt(connect, address) for address in addresses}


@probe("G5", "IPv6 is no way around: neither the host's ::1 nor link-local, multicast or NAT64", where="root",
       jail=only("ECONNREFUSED", "ENETUNREACH", "EADDRNOTAVAIL", "ENODEV", "EINVAL", "EPERM"),
       free=lambda r: r["::1"] == "ok")
def six_ways():
    def connect():
        with socket.socket(socket.AF_INET6) as s:
            s.settimeout(2)
            s.connect(("::1", GIVEN["port6"]))

    def send(address):
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
            s.sendto(b"", (address, 9, 0, 0 if address.startswith("64:") else 2))
    return {"::1": attempt(connect), **{a: attempt(send, a) for a in ("fe80::1", "ff02::1", "ff05::2", "ff0e::101", "64:ff9b::c000:201")}}


@probe("G6", "no datagram leaves, whatever its port", jail=only("ENETUNREACH", "EADDRNOTAVAIL"), free=lambda r: "ok" in r.values())
def datagrams():
    def send(address, port):
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.sendto(b"", (address, port))
    return {f"{a} {port}": attempt(send, a, port) for a in ("192.0.2.1", "2001:db8::1") for port in (53, 123, 443, 4433)}


@probe("G10", "no protocol of netlink can be spoken", where="root", jail=only("EAFNOSUPPORT", "EPERM"),
       free=lambda r: list(r.values()).count("ok") > 3)
def netlinks():
    names = {"route": 0, "sock_diag": 4, "nflog": 5, "xfrm": 6, "audit": 9, "netfilter": 12, "uevent": 15, "generic": 16, "crypto": 21}
    return {name: attempt(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, n).close()) for name, n in names.items()}


@probe("H1", "all five sets of capabilities are empty", jail=lambda r: len(r) == 5 and all(int(v, 16) == 0 for v in values(r)),
       free=lambda r: int(r["CapEff"], 16) and int(r["CapBnd"], 16))
def capabilities():
    fields = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
    return {name: value for name, value in fields.items() if name.startswith("Cap")}


@probe("H3", "no group of the caller is kept", jail=lambda r: not set(r) & {4, 24, 27, 0}, free=lambda r: {4, 24, 27} <= set(r))
def groups():
    return os.getgroups()


@probe("H3", "no group can be set", jail=equals("EPERM"), free=equals("ok"))
def set_groups():
    return attempt(os.setgroups, [0])


@probe("H3", "the user namespace itself lets no group be set", jail=equals("deny"), free=equals("allow"))
def groups_of_namespace():
    return read_some("/proc/self/setgroups").strip()


@probe("H4", "no user or group can be switched to", jail=only("EPERM"), free=only("ok"))
def switch_user():
    return {"setuid": attempt(os.setuid, 0), "setgid": attempt(os.setgid, 0), "setresuid": attempt(os.setresuid, 0, 0, 0),
            "setreuid": attempt(os.setreuid, 0, 0), "setfsuid": sc(122, 0) if os.geteuid() else "ok"}


@probe("H5", "no_new_privs is set", where="user", jail=equals("1"), free=equals("0"))
def no_new_privs():
    fields = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
    return fields["NoNewPrivs"]


@probe("H6", "the program cannot change the label that a security module gave it", where="root", jail=none_ok,
       why="needs a host that labels; brig sets no label of its own, the host's stays")
def label():
    def write(path):
        with open(path, "w") as f:
            f.write("unconfined")
    names = ("current", "exec", "apparmor/current", "keycreate", "sockcreate", "fscreate")
    return {**{name: attempt(write, f"/proc/self/attr/{name}") for name in names}, "call": sc(460, 100, 0, 0, 0)}


@probe("H8", "host name, users and machine are generic", where="root", free=lambda r: r["host"] != "brig",
       jail=lambda r: r["host"] == "brig" and r["users"] <= 6 and not r["machine-id"])
def generic_names():
    with open("/etc/passwd") as f:
        users = len(f.readlines())
    return {"host": socket.gethostname(), "users": users, "machine-id": os.path.exists("/etc/machine-id")}
