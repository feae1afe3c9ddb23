"""What runs in guests: parts, each in a guest of its boot and as one user.

To add tests: put them into a part, or add one. Tests that need what the other host lacks say so with a skip.
"""
import os
import shlex

import image
import machine

SLOWER = 10   # by so much whoever waits in a guest waits longer
SILENCE = 1200 # seconds without a word after which a guest hangs, or the test that it is in

TIERS = os.environ.get("BRIG_VM_TIERS", "test") # which of the tests below a guest runs: tests/support/tiers.py; "test,nightly" takes an hour

RUNS = {name: os.environ[name] for name in ["BRIG_TEST_RUNS"] if name in os.environ}
FEW = {"BRIG_LEAK_RUNS": "20", "BRIG_SESSIONS": "14", "BRIG_DAEMON_KILLS": "8", "BRIG_WARM_RUNS": "52", "BRIG_ZYGOTE_KILLS": "14"}
FEW = {name: os.environ.get(name, few) for name, few in FEW.items()}
IDS = {"plain": 1000, "bare": 1001} # users of the guests: with and without subuids


def part(boot, name, tests, through=(), user=None, env=None, before=(), tier="nightly"):
    """`tests` is pytest's command line; `through` is put before it, and decides about the control group. `before`: what root runs first."""
    return {"boot": boot, "name": name, "tests": tests, "through": [*login(user), *through], "user": user, "env": {**RUNS, **(env or {})},
            "before": list(before), "tier": tier}


def login(user):
    """In a service of the user's own systemd, which has a bus and a runtime directory. With --scope in `through` it becomes a scope of theirs."""
    if not user:
        return []
    runtime = f"XDG_RUNTIME_DIR=/run/user/{IDS[user]}"
    return ["runuser", "-u", user, "--", "env", "-u", "DBUS_SESSION_BUS_ADDRESS", runtime, "systemd-run", "--user", "--quiet", "--wait", "--pipe", "--"]


# What takes minutes in a guest, or a machine that is not as slow; whole files, or the beginnings of names.
LEFT_OUT = (
    "test_faults.py", "test_failing_steps.py", "test_table.py", "test_layers.py",
    "test_beside.py", # measures a whole machine, with what bench/ has
    "test_session_attacks.py", # forks that race with those that end them; SESSIONS below are those that control groups have a part in
    "test_attack.py::test_control_a_hundred_connections", # the buffers of TCP do not fill in time
    "test_lifetime.py::test_orphans_are_reaped",
    "test_exhaustion.py::test_network_namespaces_are_gone", # two hundred runs
    "test_exhaustion.py::test_looking_up_missing_names",
    "test_probes.py::test_jail[A21", "test_probes.py::test_control[A21", # 160 calls, a process for each
    "test_probes.py::test_control[A9", # loads a kernel module for each family
    "test_probes.py::test_control[A1 int", # debuggers are slow there
    "test_races.py::test_what_is_exchanged_during_launches", "test_races.py::test_no_run_kills_a_process", # many launches
    "test_rootless.py::test_whatever_is_done_to_process_1_the_clock_ends_the_run[range", # [single] is the harder one
    "test_attack.py::test_an_end_of_the_output_that_is_given_away", # nothing of it is the kernel's
)
DAEMON_LEFT_OUT = (
    "test_many.py", # a thousand runs
    "test_sessions_cli.py", "test_session_calls.py", "test_session_quota.py", # of messages, words and clocks
    "test_zygote_kills.py", # wants more runs than kills, at a tenth of the speed
    "test_warm_faults.py", # the calls of a fork one by one, under strace
    "test_cold_ready.py::test_what_fails", # the same
    "test_zygote.py::test_a_zygote_is_replaced_and_no_run_notices[rule1", # after a second, which is less than a start takes there
    "test_waiting.py::test_large_programs", "test_waiting.py::test_streams_that_nobody_takes", # seconds that are ten times as many
    "test_hostile.py::test_hostile_datagrams", # as on the other host
    "test_hostile.py::test_a_file_whose_server_does_not_answer", # known to stop the server; here it stops the test, too
    "test_daemon_lifetime.py::test_control_what_is_killed", # of version 1: with version 2 nothing stays
    "test_monitor.py::test_a_run_that_cannot_be", "test_monitor.py::test_a_word_that_no_server", # looked at before any group or namespace
    "test_limits.py", "test_queue.py", # the same, of messages, profiles and quotas
    "test_warm_interpreter.py", "test_warm_random.py", # the same, of the interpreter and of what it draws
    "test_shown_directories.py::test_a_directory_above", "test_shown_directories.py::test_control_the_exchange", "test_daemon_rootless.py::test_a_directory_above", # many launches
    "test_workdir.py", # the same, of the order and of a path in the jail
    "test_names.py", "test_descriptors.py::test_one_in_the_place", # the same, of texts and of what the server looks at
    "test_descriptors.py::test_253_that_not_every_kernel_has", # this kernel has none that the other host lacks
    "test_reload.py", "test_metrics_http.py", "test_metrics.py::test_fifty_runs", # files, figures and HTTP; tests/systemd reloads under systemd
    "test_owners.py::test_who_is_in_no_row", "test_warm_figures.py::test_after_as_many_runs", "test_warm_figures.py::test_it_is_replaced_again", # the server's rows, and its count
    "test_start.py::test_services_that_start_at_once", # four services on one processor
    "test_waiting.py::test_figures_that_the_monitor_does_not_tell", # the server's own clock
    "test_hostile.py::test_253_descriptors", "test_hostile.py::test_connections_one_after", # as on the other host
    "test_slots.py::test_a_call_of_the_monitor", "test_slots.py::test_events_of_cells", "test_slots.py::test_keys_of_a_slot", # of slots that
    "test_slots.py::test_nothing_of_a_hungry_run", "test_slots.py::test_a_crowd_leaves", # are used again, which with version 2 none is
)
# What neither the kernel nor control groups, systemd or a user have a part in, both modes of a zygote (a fork that stands ready is the harder
# one), and what a probe finds outside of a jail: only with BRIG_VM_TIERS=test,nightly.
FULL = "nightly" in TIERS.split(",")
READY = () if FULL else ("-k", "not demand")
DAEMON_LEFT_OUT += () if FULL else (
    "test_shell.py", # keys, sizes and words of a terminal
    "test_metrics.py", "test_talks.py", "test_leases.py", "test_network_profiles.py", # of messages, counts and quotas
    "test_warm.py::test_a_warm_run_is_the_same_as_a_cold_one", # of the interpreter
)


def split(folder, left_out, *groups):
    """The files of these names, group by group, and the others of a folder: parts that take about as long."""
    groups = [[f"{folder}/{name}.py" for name in group.split()] for group in groups]
    out = [f"--{'ignore' if name.endswith('.py') else 'deselect'}={folder}/{name}" for name in left_out]
    return [*([*group, *out] for group in groups), [folder, *(f"--ignore={name}" for group in groups for name in group), *out]]


BOUNDS, ESCAPE = split("tests/attack", LEFT_OUT, "test_rootless test_exhaustion test_channels")
WARM, STARTS, DAEMON = split("tests/service", DAEMON_LEFT_OUT,
                             "test_warm test_warm_leaks test_warm_traces test_warm_signals test_warm_before_zygote test_warm_figures test_zygote test_netpool",
                             "test_daemon_lifetime test_daemon_rootless test_hostile test_start test_kills test_zygote_moments test_owners test_kernel_log")
FAULTS = [f"tests/attack/test_failing_steps.py::test_a_step_that_fails_starts_no_program[1-{step}]" for step in ("cell:join-groups", "enter:join-groups", "cell:die-with-parent")]
SESSIONS = [f"tests/attack/test_session_attacks.py::test_{name}" for name in (
    "who_ends_what_holds_a_session_together_ends_the_session_and_all_hear_why[ready]",
    "nothing_that_a_command_has_started_lives_on_when_it_has_ended[ready-hidden daemons]",
    "a_fork_bomb_of_an_interpreter_ends_with_a_restart_and_the_files_stay[ready]",
    "where_a_program_has_taken_all_processes_a_call_hears_so_and_a_restart_helps[ready]",
    "a_memory_bomb_ends_as_oom_and_costs_no_other_interpreter[ready]",
    "a_file_that_takes_all_memory_leaves_nothing_and_costs_no_interpreter[ready]")]

VIEWS = ["tests/run/test_program_view.py", "tests/python/test_tools_jail.py", "tests/python/test_python_sessions.py::test_tools_are_those_of_one_call_and_of_its_context_alone"] if FULL else []

HELLO = "tests/run/test_examples.py"
CHECK = "tests/mcp/test_mcp_check.py"
ONCE = [f"--deselect={CHECK}::test_mcp_check_{name}" for name in ( # as root; who calls has no part in it
    "works_whatever_the_settings_say", "says_what_is_missing", "of_a_program_that_is_cut_off", "finds_mistakes", "with_a_full_disk")]
USER = [HELLO, CHECK, *ONCE, "tests/groups/test_user.py"]

SYSTEMD = "systemd.unit=brig-tests.target"
BOOTS = {
    "systemd": SYSTEMD,
    "service": SYSTEMD, # brig is installed there, and serves
    "gate": SYSTEMD, # boots once: from its second part on as "service"
    "hybrid": f"systemd.unified_cgroup_hierarchy=0 {SYSTEMD}", # control groups of version 1, which systemd delegates to nobody but root
    "bare": "init=/usr/lib/brig-guest/init brig-tests", # cgroup v2 and nobody who manages it
    "debian13": SYSTEMD, # Debian 13 and its kernel, whatever this host is; boots once: from its second part on as "service"
}
SUITES = {"debian13": "trixie"} # of boots that are no guest of image.SUITE
# The gate's: what a kernel, control groups of version 2 and systemd decide, each promise once, as root; then the service as it is installed.
GATE = ["tests/attack/test_probes.py", "tests/groups/test_v2.py", *FAULTS, *SESSIONS,
        *[f"tests/attack/test_exhaustion.py::test_{name}" for name in (
            "a_memory_bomb_ends_as_oom_at_its_limit", "a_child_that_uses_up_the_memory_ends_the_whole_run_as_oom", "swap_is_no_memory_beyond_the_limit",
            "memory_is_charged", "a_fork_bomb_is_held_and_the_host_stays_responsive", "a_fork_is_refused_with_eagain_at_the_limit")],
        *[f"tests/attack/test_lifetime.py::test_{name}" for name in (
            "nobody_dies_of_the_programs_kills", "all_endless_programs_end_at_the_wall_time", "cpu_time_counts_all_processes")],
        *[f"tests/service/test_daemon_lifetime.py::test_{name}" for name in (
            "a_run_dies_with_its_connection", "a_daemon_that_was_killed_with_all_it_started_finds_what_is_left")],
        "tests/service/test_warm_signals.py",
        "-k", "not (test_control or warm] or range] or single] or demand)", "--deselect=tests/attack/test_probes.py::test_jail[A21"]
SERVICE = ["tests/systemd/test_service.py"]
PARTS = [ # of each boot, those that take long come first: who is free takes the next
    part("systemd", "warm runs", [*WARM, *READY], env=FEW),
    part("service", "service", ["tests/systemd"], before=["tests/vm/install-brig"]),
    part("hybrid", "cgroup v1", ["tests/systemd/test_service_v1.py"], before=["tests/vm/install-brig"]),
    part("bare", "no systemd", [HELLO, CHECK, *ONCE, "tests/groups"]),
    part("systemd", "daemon", DAEMON, env=FEW),
    part("systemd", "daemon, starts and ends", STARTS, env=FEW),
    part("systemd", "escape", ESCAPE, env=FEW),
    part("systemd", "escape, bounds", BOUNDS, env=FEW),
    part("systemd", "root", [HELLO, CHECK, "tests/groups", "tests/run/test_run_status.py", "tests/run/test_record.py", *VIEWS, *FAULTS, *SESSIONS]),
    part("systemd", "as plain", USER, user="plain"),
    part("systemd", "as bare", USER, user="bare"),
    part("systemd", "as plain, of no systemd", USER, through=["runuser", "-u", "plain", "--"]),
    part("debian13", "jail, groups, sessions", [HELLO, CHECK, *ONCE, *GATE]),
    part("debian13", "as plain", USER, user="plain"),
    part("debian13", "service of the packages, AppArmor", [*SERVICE, "tests/systemd/test_apparmor.py"], before=["tests/vm/install-brig"]),
    part("gate", "jail, groups, sessions", GATE, tier="gate"),
    part("gate", "service of the packages", SERVICE, before=["tests/vm/install-brig"], tier="gate"),
]

KIND = machine.X86


def base(boot):
    return image.base(SUITES.get(boot, image.SUITE))


def tree_disk(disk, order):
    image.tree_disk(disk, order, TREES)


ASKED = shlex.split(os.environ.get("BRIG_VM_TESTS", ""))
TREES = ["basic", *(["network"] if any("tests/network" in word for word in ASKED) else [])] # of the rootfs store
if ASKED: # pytest's command line: those and nothing else
    SERVED = any(word.startswith("tests/systemd") for word in ASKED)
    PARTS = [part("service", "asked for", ASKED, before=["tests/vm/install-brig"]) if SERVED else part("systemd", "asked for", ASKED, env=FEW)]
