"""The floors of the house: nothing looks up, and the pure ones ask the kernel for nothing."""
import graphlib
import pathlib
import re
import subprocess

import pytest

from support import host

REPO = host.REPO
IO = ["common", "common/json", "common/io"]
PROTOCOL = [*IO, "common/protocol"]
SPEC = [*PROTOCOL, "jail/spec"]
CLIENT = [*PROTOCOL, "common/client"]
MCP = [*CLIENT, "mcp/rpc", "mcp/broker"]
CELL = [*SPEC, "jail/privilege", "jail/cgroup", "jail/seccomp", "jail/messages", "jail/child", "jail/zygote"]
# Folder: the floors it stands on, each of them further up in this table. A file may include headers of its own folder and of these.
FLOORS = {
    "common": [],
    "common/json": ["common"],
    "common/protocol": ["common", "common/json"],
    "common/io": ["common"],
    "common/client": PROTOCOL,
    "common/http": ["common", "common/io"],
    "jail/spec": ["common", "common/json", "common/protocol"],
    "jail/privilege": SPEC,
    "jail/cgroup": [*SPEC, "jail/privilege"],
    "jail/seccomp": SPEC,
    "jail/profile": SPEC,
    "jail/messages": [*SPEC, "jail/cgroup"],
    "jail/child": [*SPEC, "jail/cgroup", "jail/seccomp", "jail/messages"],
    "jail/zygote": [*SPEC, "jail/privilege", "jail/messages", "jail/child"],
    "jail/zygote/module": [*SPEC, "jail/messages", "jail/child", "jail/zygote"],
    "jail/cell": CELL,
    "jail/runner": [*CELL, "jail/cell"],
    "jail/supervisor": [*CELL, "jail/cell", "jail/runner"],
    "jail/launcher": [*CELL, "jail/cell", "jail/runner"],
    "jail/monitor": [*SPEC, "jail/privilege", "jail/cgroup", "jail/messages"],
    "jail/audit": SPEC,
    "jail/config": [*SPEC, "jail/privilege", "jail/cgroup", "jail/seccomp", "jail/profile", "jail/messages"],
    "jail/plan": [*SPEC, "jail/privilege", "jail/messages", "jail/config"],
    "jail/server": [*SPEC, "jail/privilege", "jail/cgroup", "jail/seccomp", "jail/messages", "jail/launcher", "jail/audit", "jail/config", "jail/plan"],
    "jail/daemon": [*SPEC, "jail/privilege", "jail/cgroup", "jail/messages", "jail/audit", "jail/config", "jail/server"],
    "jail/doctor": [*SPEC, "jail/privilege", "jail/cgroup", "jail/profile"],
    "jail/cli": [*CLIENT, "jail/spec", "jail/privilege", "jail/seccomp", "jail/profile", "jail/doctor"],
    "jail/proxy": SPEC,
    "jail/metrics": [*CLIENT, "common/http", "jail/privilege"],
    "rootfs-builder": SPEC,
    "mcp/rpc": IO,
    "mcp/broker": [*IO, "mcp/rpc"],
    "mcp/remote": [*IO, "mcp/rpc"],
    "mcp/remote/main": [*IO, "mcp/rpc", "mcp/remote"],
    "mcp": MCP,
    "mcp/http": [*MCP, "common/http", "mcp"],
    "mcp/main": [*MCP, "mcp"],
    "api": [*CLIENT, "common/http"],
    "api/main": [*CLIENT, "common/http", "api"],
    "mcp/http/main": [*MCP, "common/http", "mcp", "mcp/http"],
    "tests/mcp/conformance": [*MCP, "common/http", "mcp", "mcp/http"],
}
FLOORS |= {f"{floor}/main": [*FLOORS[floor], floor] for floor in ("jail/supervisor", "jail/monitor", "jail/proxy", "jail/daemon", "jail/cli", "jail/metrics", "rootfs-builder")}
# Folders in the folder of a floor that belong to it: they may include each other, and no file of the floor calls in a circle.
ROOMS = {
    "jail/spec": ["model", "policy", "net", "record"],
    "jail/server": ["runs", "sessions"],
    "jail/cli": ["run", "session", "service", "host"],
    "mcp": ["protocol", "stdio", "settings", "runs", "reply", "tools"],
    "api": ["settings", "http", "runs", "spellings"],
}
APART = {"jail/init": "PID 1 of a cell: alone, without a C library; its protocol.h is shared with the launcher, raw_call.h with early and jail/cell",
         "common/static": "what static programs have in the place of the C library's name services: alone",
         "jail/cli/early": "what brig does before its C library begins: alone, but for early.h and raw_call.h"}
# One header of a folder for one floor that sees no other of it.
SHARED = {"jail/init/protocol.h": "jail/child", "jail/init/raw_call.h": "jail/cell", "jail/child/child_table.h": "jail/cli", "jail/profile/code_digest.h": "jail/server"}
PURE = ["libcommon.a", "libcommon_json.a", "libcommon_protocol.a", "libjail_spec.a"]
# What changes or asks the machine. Memory, text, time conversion and printing to a FILE are not among them.
KERNEL_CALLS = """
open openat open64 openat64 creat read write pread pwrite readv writev close dup dup2 dup3 pipe pipe2 fcntl ioctl stat fstat lstat fstatat
access faccessat unlink unlinkat mkdir mkdirat rmdir rename renameat link symlink readlink readlinkat opendir fdopendir chdir fchdir chmod fchmod
chown fchown mount umount umount2 pivot_root chroot unshare setns clone clone3 fork vfork execve execv execvp execl fexecve waitpid wait4 waitid
kill raise socket socketpair bind listen accept connect send recv sendmsg recvmsg prctl seccomp ptrace syscall setuid setgid setresuid setresgid
setgroups geteuid getuid setrlimit getrlimit prlimit memfd_create fopen fopen64 fdopen popen system getenv secure_getenv setenv poll epoll_wait
select nanosleep sleep usleep gettimeofday clock_gettime time getrandom
""".split()


def files(floor, *patterns):
    """The files of a floor and its rooms."""
    folders = [REPO / floor, *(REPO / floor / room for room in ROOMS.get(floor, []))]
    return sorted(path for folder in folders for pattern in patterns for path in folder.glob(pattern))


def headers(floor):
    return {path.name for path in files(floor, "*.h", "*.def")}


def includes(floor):
    """(where, the name of the header) of every include of ours in a floor."""
    for path in files(floor, "*.[ch]"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = re.match(r'#include\s+"([^"]+)"', line)
            if found:
                yield f"{path.relative_to(REPO)}:{number}: {found[1]}", pathlib.PurePath(found[1]).name


@pytest.mark.parametrize("folder", FLOORS)
def test_includes_look_down_only(folder):
    """Nothing includes a header of a floor above or beside."""
    assert files(folder, "*.[ch]"), "there is no such folder"
    allowed = set().union(*[headers(f) for f in [folder, *FLOORS[folder]]])
    shared = {pathlib.PurePath(header).name for header, floor in SHARED.items() if floor == folder}
    ours = set().union(*[headers(f) for f in [*FLOORS, *APART]])
    wrong = [where for where, name in includes(folder) if name in ours - allowed - shared]
    assert not wrong, "these belong to a floor above or beside"


def test_floors_stand_in_no_circle():
    seen = set()
    for folder, below in FLOORS.items():
        assert set(below) <= seen, f"{folder} comes before a floor that it stands on"
        seen.add(folder)


def test_every_folder_with_c_files_is_a_floor():
    tops = ("common", "jail", "rootfs-builder", "mcp", "api")
    found = {str(path.parent.relative_to(REPO)) for top in tops for path in (REPO / top).rglob("*.c")}
    rooms = {f"{floor}/{room}" for floor, names in ROOMS.items() for room in names}
    assert found - set(FLOORS) - set(APART) - rooms == set(), "this file lists what each floor stands on, and its rooms"


@pytest.mark.parametrize("name", PURE)
def test_pure_floors_ask_the_kernel_for_nothing(name):
    """Bytes in, struct out: no file, no process, no clock, no environment."""
    path = host.build_dir() / name
    assert path.exists(), f"{path} is missing: ./dev build"
    found, member = [], ""
    for line in subprocess.run(["nm", "-u", path], capture_output=True, text=True, check=True).stdout.splitlines():
        if line.endswith(":"):
            member = line[:-1]
        elif line.split()[-1:] and line.split()[-1].split("@")[0] in KERNEL_CALLS:
            found.append(f"{member}: {line.split()[-1]}")
    assert not found, f"{name}: {found}"


def test_rows_and_the_command_line_need_no_json():
    """common has what is typed (field.h, option.h): who needs no more of it gets no JSON library."""
    undefined = subprocess.run(["nm", "-u", host.build_dir() / "libcommon.a"], capture_output=True, text=True, check=True).stdout
    assert "option.c.o" in undefined and "json_" not in undefined


def test_control_the_kernel_floor_is_seen_calling_the_kernel():
    path = host.build_dir() / "libcommon_io.a"
    undefined = {line.split()[-1] for line in subprocess.run(["nm", "-u", path], capture_output=True, text=True).stdout.splitlines() if line.strip()}
    assert undefined & set(KERNEL_CALLS)


def calls(library):
    """{file: files of the library that it calls}, from the symbols of an archive."""
    made, wants, member = {}, {}, ""
    for line in subprocess.run(["nm", host.build_dir() / library], capture_output=True, text=True, check=True).stdout.splitlines():
        if line.endswith(".o:"):
            member = line[:-1]
            wants[member] = set()
        elif line.strip():
            kind, name = line.split()[-2:]
            if kind == "U":
                wants[member].add(name)
            elif kind in "TDRB":
                made[name] = member
    return {member: {made[name] for name in names if name in made} - {member} for member, names in wants.items()}


@pytest.mark.parametrize("library", sorted(path.name for path in host.build_dir().glob("lib*.a")))
def test_no_files_call_each_other_in_a_circle(library):
    """Who reads one can stop at those below it."""
    try:
        graphlib.TopologicalSorter(calls(library)).prepare()
    except graphlib.CycleError as e:
        pytest.fail(" calls ".join(reversed(e.args[1])))


def test_the_libraries_are_those_of_the_floors():
    """A library that was renamed, or is of an older build, would be looked at in the place of ours."""
    assert len(list(host.build_dir().glob("lib*.a"))) >= 24


def test_nothing_names_the_builders_home():
    """No tracked text holds an absolute path of the machine it was written on."""
    listed = subprocess.run(["git", "-C", REPO, "ls-files"], capture_output=True, text=True).stdout.split("\n")
    home = str(REPO.parent)
    if home in ("/", "/usr/src", "/src", "/tmp", "/root", "/home"):
        pytest.skip(f"the repository lies in {home}, a name that may well be written somewhere")
    found = [name for name in listed if name and (REPO / name).is_file() and home.encode() + b"/" in (REPO / name).read_bytes()]
    assert not found


# What is linked into the programs that have privilege: whole floors, single files of others, and libraries. Whoever takes such a process over finds
# this code there and no other; brig-security(7) promises what is not on the list.
HOLDS = {
    "monitor": {
        "floors": ["common", "common/io", "jail/monitor", "jail/monitor/main"],
        "jail/spec": "cg_path id_range limits mount_plan mountinfo net_listeners refusal",
        "jail/privilege": "rootless privilege slot sub_ids surroundings",
        "jail/cgroup": "cg cg_leaf cg_limit cg_members cg_parent cg_dir cg_sweep cg_trace cg_trees",
        "jail/messages": "cell_fit exec_args monitor_check run_spec_head proxy_exec zygote_report", # the last: the file of figures, which the monitor makes
        "libraries": ["libcgroup", "libcap"], # the first to find the hierarchies; it brings a parser of its configuration files along, which we do not call
    },
    "supervisor": {
        "floors": ["common", "common/io", "jail/child", "jail/zygote", "jail/cell", "jail/runner", "jail/supervisor", "jail/supervisor/main"],
        "jail/spec": "bpf filter_notice cg_path layer limits mount_plan mountinfo net_listeners policy_value program_env refused_call",
        "jail/privilege": "privilege slot",
        "jail/cgroup": "cg cg_again cg_count cg_leaf cg_members cg_dir cg_trace",
        "jail/seccomp": "seccomp_notify",
        "jail/messages": "cell_fit exec_args run_spec_file run_spec_head zygote_report",
        "libraries": ["libcap", "libnl_3"],
    },
}
OF_LIBRARY = {"cap_alloc.o": "libcap", "cap_proc.o": "libcap"} # the others have the library's name in theirs
OF_COMPILER = r"Scrt1\.o|crt"


def linked(program):
    """The source files whose objects are in it, and the libraries: each object leaves its name among the symbols."""
    if "BRIG_COVERAGE:BOOL=ON" in (host.build_dir() / "CMakeCache.txt").read_text():
        pytest.skip("a build that counts what it executes has the counters in every program")
    symbols = subprocess.run(["nm", "-a", host.build_dir() / "bin" / program], capture_output=True, text=True, check=True).stdout
    names = {name for name in re.findall(r"^\S+ a (\S+)$", symbols, re.M) if not re.match(OF_COMPILER, name)}
    assert f"brig-{program}.c" in names or f"{program}.c" in names, "a binary without symbols proves nothing"
    needed = subprocess.run(["ldd", host.build_dir() / "bin" / program], capture_output=True, text=True, check=True).stdout
    shared = {name.replace("-", "_") for name in re.findall(r"^\s*(lib[^.]+)\.so", needed, re.M)} - {"libc"}
    return {name for name in names if name.endswith(".c")}, shared | {OF_LIBRARY.get(name, name.split("_la-")[0]) for name in names if not name.endswith(".c")}


def allowed(program):
    """(whole floors and single files, the single files alone)."""
    parts = {f"{name}.c" for floor, names in HOLDS[program].items() if isinstance(names, str) for name in names.split()}
    return {path.name for floor in HOLDS[program]["floors"] for path in files(floor, "*.c")} | parts, parts


def strange(program, to):
    """What is in a program that may not be in this one."""
    sources, libraries = linked(program)
    return sources - allowed(to)[0] | libraries - set(HOLDS[to]["libraries"])


@pytest.mark.parametrize("program", HOLDS)
def test_what_has_privilege_holds_its_own_code_only(program):
    """No JSON, no filter compiler, nothing of the server; in the monitor nothing that builds or watches a cell, in the supervisor nothing that gives out ids."""
    assert strange(program, program) == set()
    assert allowed(program)[1] - linked(program)[0] == set(), "not in it any more: take it off the list"


@pytest.mark.parametrize("program, to, seen", [
    ("brigd", "monitor", {"server.c", "gate.c", "json_text.c", "load.o", "filter_compile.c", "runner.c", "libseccomp"}),
    ("supervisor", "monitor", {"supervisor.c", "runner.c", "runner_warm.c", "cell.c", "child_cell.c", "seccomp_notify.c", "zygote_process.c", "init_image.c", "libnl_3"}),
    ("monitor", "supervisor", {"monitor.c", "id_pool.c", "monitored_cell.c", "profile_userns.c", "monitor_check.c", "cg_parent.c", "cg_trees.c", "libcgroup"}),
])
def test_control_what_does_not_belong_into_one_is_seen_in_another(program, to, seen):
    assert seen <= strange(program, to)


def test_the_frontend_on_stdio_loads_nothing_but_the_c_library():
    """Clients start it for each question: an HTTP library and its TLS would take longer to load than the answer does."""
    needed = {program: subprocess.run(["ldd", host.build_dir() / "bin" / program], capture_output=True, text=True, check=True).stdout
              for program in ("brig-mcp", "brig-mcp-http")}
    assert "libc.so" in needed["brig-mcp"] and "microhttpd" in needed["brig-mcp-http"]
    loaded = set(re.findall(r"^\s*(\S+?)\.so", needed["brig-mcp"], re.M))
    assert {name for name in loaded if not re.match(r"(linux-vdso|libc|libjansson|.*/ld-linux.*)$", name)} == set()
