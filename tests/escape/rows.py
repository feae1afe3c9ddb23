#!/usr/bin/env python3
"""The rows of the escape matrix that `brig run` answers for: what is tried, and whether every commit must pass it.

Tests name a row by its id; `python3 tests/escape/rows.py` prints the table as Markdown.
"""
import collections

Row = collections.namedtuple("Row", "id group gate sentence")

GROUPS = {
    "A": "system calls and their ABI", "B": "files and mounts", "C": "/proc, /sys and kernel interfaces",
    "D": "processes, signals and lifetime", "E": "exhaustion", "F": "channels between jails",
    "G": "network", "H": "identity and privilege", "I": "the launcher itself",
}
GATE, MORE = True, False
TABLE = [
    # id, gate, sentence
    ("A1", GATE, "a 32-bit call by int 0x80 kills the caller"),
    ("A2", GATE, "an x32 call kills the caller"),
    ("A3", GATE, "high bits of an argument do not get past a comparison"),
    ("A4", GATE, "clone3, which hides its flags, is absent and threads still start"),
    ("A5", GATE, "no new namespace of any kind can be made inside"),
    ("A6", GATE, "io_uring is absent"),
    ("A7", GATE, "the kernel's crypto sockets cannot be opened"),
    ("A8", GATE, "vsock, which reaches the hypervisor, cannot be opened"),
    ("A9", GATE, "only local and IP sockets open, and no kernel module is loaded for others"),
    ("A10", MORE, "raw and ping sockets are refused"),
    ("A11", MORE, "MPTCP, SCTP and UDP-Lite are refused"),
    ("A12", GATE, "bpf, perf, userfaultfd, kcmp, process_vm and file handles are refused before their arguments are read"),
    ("A13", GATE, "ptrace is refused and the run still ends in time"),
    ("A14", GATE, "every mount call, old and new, is refused"),
    ("A15", GATE, "the kernel keyring is out of reach"),
    ("A16", GATE, "the splice family is absent and file copies are still correct"),
    ("A17", MORE, "nothing can be typed into a terminal"),
    ("A18", MORE, "personality cannot be changed"),
    ("A19", MORE, "a program cannot install a filter with a listener"),
    ("A21", MORE, "system calls newer than the policy are absent or refused"),
    ("A22", MORE, "the filter and no_new_privs are on every thread"),
    ("A23", MORE, "iopl and modify_ldt are refused"),
    ("B1", GATE, "the root file system cannot be changed"),
    ("B2", GATE, "no file of the host can be seen"),
    ("B3", GATE, "no descriptor leads to a directory outside"),
    ("B4", GATE, "a descriptor that brig inherited does not reach the program"),
    ("B5", GATE, "links planted by one run are followed by none of the next"),
    ("B8", MORE, "a set-uid copy of a program does not change the user, and the rootfs has none"),
    ("B9", MORE, "no device but the harmless ones can be made or opened"),
    ("B10", MORE, "what is written to /tmp or /dev/shm cannot be executed"),
    ("B12", GATE, "each writable place ends at its size"),
    ("B13", MORE, "each writable place ends at its number of files"),
    ("B16", MORE, "a device of the host that is not what its name says is not shown"),
    ("B18", MORE, "the rootfs is not the host's, and no process of the host runs from it"),
    ("C1", GATE, "nothing under /proc/sys and no trigger file can be opened for writing"),
    ("C2", MORE, "kernel memory, symbols, keys and timers cannot be read"),
    ("C3", GATE, "only the program's own processes are in /proc"),
    ("C4", MORE, "process 1 shows no environment, memory, descriptors or program file"),
    ("C5", GATE, "no control group is mounted or can be"),
    ("C6", MORE, "/sys is not there"),
    ("C7", MORE, "the kernel log cannot be read"),
    ("C11", MORE, "the list of mounts tells no path of the host but the store's"),
    ("D1", GATE, "fifty daemons that ignore every signal die with the run"),
    ("D2", GATE, "process 1 and everybody else survive every kill the program tries"),
    ("D3", GATE, "a program that stops itself ends at its wall time"),
    ("D4", GATE, "sleeping, waiting, spinning and blocking signals all end at the wall time"),
    ("D5", MORE, "CPU time counts all processes together"),
    ("D6", MORE, "a brig that is killed at any moment leaves no process, mount, group or file"),
    ("D9", MORE, "two thousand orphans are reaped"),
    ("D10", MORE, "neither a status nor a lookalike record forges the verdict"),
    ("D11", MORE, "the out-of-memory score cannot be lowered"),
    ("D12", MORE, "priority cannot be raised"),
    ("E1", GATE, "a memory bomb ends as oom at its limit"),
    ("E2", MORE, "memory taken by files, pipes, sockets, memfds and mappings is charged"),
    ("E3", MORE, "no SysV memory can be made to outlive the run"),
    ("E4", GATE, "a fork bomb is held and the host stays responsive"),
    ("E5", MORE, "a thread bomb is held"),
    ("E6", MORE, "descriptors end at their limit and the next jail is not affected"),
    ("E7", MORE, "what one jail takes of the per-user limits is not missing in another"),
    ("E8", GATE, "an output flood is cut, counted and ended, and brig does not grow"),
    ("E9", MORE, "a reader that never reads does not stop the clock"),
    ("E10", MORE, "reading the standard input ends at once"),
    ("E11", MORE, "filling the workspace ends at its size"),
    ("E13", MORE, "names looked up and missing are charged or bounded"),
    ("E14", MORE, "control groups, mounts and namespaces are back at their number after many runs"),
    ("E17", MORE, "a crash leaves no core and calls no handler"),
    ("E18", MORE, "crashes and refused calls do not flood the kernel's log"),
    ("E19", MORE, "bombs of arithmetic, patterns, compression and source end at a limit"),
    ("E21", MORE, "a working set as large as the limit ends at the wall time"),
    ("F1", GATE, "an abstract socket of one jail is not there in another"),
    ("F3", MORE, "SysV and POSIX queues and segments are not shared"),
    ("F4", GATE, "/dev/shm of one jail is empty in another"),
    ("F5", MORE, "a lock on a file of the rootfs is seen by another jail: one documented bit"),
    ("F8", MORE, "nothing a run leaves is there in the next"),
    ("F10", MORE, "two jails at once have two host users"),
    ("G1", GATE, "there is no route, no name service and no interface but lo"),
    ("G2", MORE, "what listens on the host's loopback is not reachable"),
    ("H1", GATE, "every set of capabilities is empty"),
    ("H2", GATE, "the program's host user belongs to nobody"),
    ("H3", GATE, "no group of the caller is kept and none can be set"),
    ("H4", MORE, "no user can be switched to"),
    ("H5", MORE, "no_new_privs is on"),
    ("H7", MORE, "the environment is an exact list"),
    ("H8", MORE, "host name and users are generic"),
    ("I6", MORE, "no program runs when any call of the set-up fails"),
]
ROWS = {key: Row(key, GROUPS[key[0]], gate, sentence) for key, gate, sentence in TABLE}
GATE_ROWS = [row.id for row in ROWS.values() if row.gate]

if __name__ == "__main__":
    print("| row | about | every commit | promise |\n|---|---|---|---|")
    for row in ROWS.values():
        print(f"| {row.id} | {row.group} | {'yes' if row.gate else ''} | {row.sentence} |")
