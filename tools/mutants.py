#!/usr/bin/python3
"""mutants - breaks one guard after the other, each in a copy of the tree, and asks the tests that should see it: ./dev mutants [NAME]...

A row says where a guard is and what stands there instead. Its tests are words for pytest, few enough to take seconds. A mutant that no test
catches is a hole in the tests: the row that is missing is written, and not another mutant.
"""
import collections
import datetime
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests"))

from support import host # pylint: disable=wrong-import-position

TREE, PAGE = ROOT / "build" / "mutants", ROOT / "docs" / "mutants.md"
HANGS = 300 # seconds after which the tests of a mutant are ended

Mutant = collections.namedtuple("Mutant", "name file old new breaks tests")
MUTANTS = [Mutant(*row) for row in (
    # --- from clone() to exec()
    ("fork-keeps-descriptors", "jail/child/child_program.c",
     "	return child_sys(close_range(FD_HANDED_NULL, ~0u, 0));", "	return 0;",
     "the fork of a zygote keeps the zygote's own descriptors", ["tests/service/test_warm_traces.py", "-k", "descriptors_of_a_fork"]),
    ("bounding-set-kept", "jail/child/child_program.c",
     "	{ \"bounding-set\",      child_empty_bounding_set,     \"needs CAP_SETPCAP, which is dropped below\" },\n", "",
     "the program's bounding set of capabilities is the launcher's", ["tests/attack/test_probes.py", "-k", "test_jail and H1"]),
    ("no-landlock", "jail/child/landlock.c",
     "		r = child_sys(landlock_restrict_self(rules, quiet));", "		r = 0;",
     "Landlock's rules are made and not applied", ["tests/attack/test_probes.py", "-k", "test_jail and D2"]),
    ("suid-mounts", "jail/spec/model/mount_plan.h",
     "	return MOUNT_ATTR_NOSUID | (m->flags & MF_RO", "	return (m->flags & MF_RO",
     "the cell's own mounts are without nosuid", ["tests/attack/test_probes.py", "-k", "test_jail and B1"]),
    ("processes-shown", "jail/child/child_cell.c",
     "{ \"hidepid\", \"invisible\" }, ", "",
     "/proc shows PID 1 of the cell", ["tests/attack/test_probes.py", "-k", "test_jail and C3"]),
    ("nested-namespaces", "jail/cell/user_ns.c",
     "		{ \"/proc/sys/user/max_user_namespaces\", \"0\", 1 },\n", "",
     "the filter alone keeps a program from making user namespaces", ["tests/attack/test_attack.py", "-k", "kernel_itself"]),
    ("root-for-a-fork", "jail/zygote/fork_server.c",
     "	return o->program_id != 0 && (o->init_id == 0 || o->init_id == o->program_id);", "	(void)o;\n	return true;",
     "a supervisor that was taken over has a zygote fork into its cell as root", ["tests/unit/test_zygote.c"]),
    # --- the launcher
    ("setgroups-allowed", "jail/cell/user_ns.c",
     "	if (file_write_existing(proc, \"setgroups\", \"deny\") < 0)\n		return err_sys(e, \"set-up step user-namespace: setgroups\");\n", "",
     "the cell's user namespace lets groups be set", ["tests/attack/test_probes.py", "-k", "test_jail and H3"]),
    ("ids-overlap", "jail/privilege/slot.c",
     "range->base : range->base + number * IDS_PER_CELL;", "range->base : range->base + number;",
     "the program of one cell has the host id of PID 1 in the next", ["tests/run/test_program_view.py", "-k", "twenty"]),
    ("launcher-keeps-root", "jail/privilege/privilege.c",
     "	if (keep_only_cap_kill() < 0 || prctl(PR_SET_NO_NEW_PRIVS", "	if (prctl(PR_SET_NO_NEW_PRIVS",
     "the launcher watches the program with all of its capabilities", ["tests/attack/test_attack.py", "-k", "launcher"]),
    ("swap", "jail/cgroup/cg_limit.c",
     "	{ CG_MEMORY,  false, \"memory.memsw.limit_in_bytes\", VALUE_MEMORY,  LAYER_MEMORY, true },  /* may not be lower than the row above */\n", "",
     "a cell at its memory limit goes on in the host's swap (cgroup v1)", ["tests/attack/test_exhaustion.py", "-k", "swap"]),
    ("too-many-processes", "jail/cgroup/cg_limit.c",
     "		value = l->pids + 1;", "		value = l->pids + 8;",
     "the control group lets a few more processes in than the limit says", ["tests/attack/test_exhaustion.py", "-k", "fork_is_refused"]),
    ("no-wall-clock", "jail/runner/runner.c",
     "	if (now >= deadline)\n		runner_end_run(w, EXIT_timeout_wall);\n", "",
     "the wall clock is not watched", ["tests/run/test_record.py", "-k", "timeout and ends"]),
    # --- policy
    ("filter-row-more", "profiles/python.policy",
     "allow fadvise64 if arg3 in POSIX_FADV_NORMAL", "allow fadvise64 if arg3 in POSIX_FADV_DONTNEED POSIX_FADV_NORMAL",
     "pages of the shared rootfs can be thrown out of memory", ["tests/attack/test_probes.py", "-k", "test_jail and F7"]),
    ("floor-row-less", "jail/spec/policy/policy_floor.c",
     "	CLONE_FLAG(CLONE_NEWUSER),\n", "",
     "a policy may allow clone() with CLONE_NEWUSER", ["tests/unit/test_policy.c"]),
    # --- the service
    ("monitor-believes-limits", "jail/messages/monitor_check.c",
     "	if (check_limit_bounds(&r->order.limits, e) < 0 || check_limits_below_ceilings(&r->order.limits, &profile->ceilings, e) < 0)\n		return err_wrap(e, \"run\");",
     "	if (check_limit_bounds(&r->order.limits, e) < 0)\n		return err_wrap(e, \"run\");",
     "a server that was taken over gets runs above the ceilings", ["tests/service/test_monitor.py", "-k", "run_that_cannot_be"]),
    ("server-tells-profiles", "jail/monitor/monitor.c",
     " && messages[m->kind].sender == sender", "",
     "the monitor takes profiles from a server that was taken over", ["tests/service/test_monitor.py", "-k", "no_server_would_say"]),
    ("half-a-reload", "jail/config/reader.c",
     "	if (r->left_out.kind != ERR_NONE) {\n		*e = r->left_out;\n		return -1;\n	}\n", "",
     "a reload removes a profile that cannot be used, and is not refused", ["tests/service/test_reload.py", "-k", "changes_nothing"]),
    ("anybody-reloads", "jail/server/gate_reload.c",
     "	if (c->peer.uid != 0 && c->peer.uid != getuid())", "	if (getuid() == 0)",
     "every user can make the service read its files again", ["tests/service/test_reload.py", "-k", "only_root"]),
    ("withdrawn-runs-on", "jail/server/server_rules.c",
     "		c->access_rule = is_known ?", "		if (!is_known)\n			c->access_rule = is_known ?",
     "a user whose access a reload withdraws keeps it on connections that are open", ["tests/service/test_reload.py", "-k", "withdrawn"]),
    ("used-leases-end", "jail/monitor/monitor_cells.c",
     "		if (!s->lease_is_out)\n			monitored_cell_close_control(s);", "		if (!s->lease_is_out || s->is_for_any_run)\n			monitored_cell_close_control(s);",
     "a run that has just begun is ended when its profile is retired", ["tests/service/test_reload.py", "-k", "a_moment_ago"]),
    ("strangers-are-served", "jail/config/access.c",
     ": p->uid == a->rule[i].id)", ": p->uid >= a->rule[i].id)",
     "the row of one user is the row of others, too", ["tests/service/test_owners.py", "-k", "in_no_row"]),
    ("quota-off-by-one", "jail/config/quota.c",
     "	if (limits->runs && runs >= limits->runs) {", "	if (limits->runs && runs > limits->runs) {",
     "a user has one run more than the quota allows", ["tests/unit/test_quota.c"]),
    ("runs-of-others", "jail/server/gate_cancel.c",
     "	else if (r && peer_is_shown_to(&r->peer, c->peer.uid))", "	else if (r)",
     "every user who knows a run's id can end the run", ["tests/service/test_owners.py", "-k", "nobody_sees_or_ends"]),
    ("callers-descriptors", "jail/daemon/private.c",
     "	if (close_range(SOCKET + 1, ~0u, 0) < 0 || fcntl(SOCKET, F_SETFD", "	if (fcntl(SOCKET, F_SETFD",
     "a brigd of one's own holds what its caller had open", ["tests/service/test_private.py", "-k", "nothing_of_the_callers"]),
    ("server-reads-files", "jail/daemon/confine.c",
     "	{ \"landlock\",     restrict_files_by_landlock }, /* opens /proc */\n", "",
     "a server that was taken over reads the host's files", ["tests/unit/test_confine.c"]),
    ("journal-forged", "jail/audit/journal.c",
     "	journal_message_append(m, \"\\n\", 1);\n	journal_message_append(m, &size, sizeof size);\n", "	(void)size;\n	journal_message_append(m, \"=\", 1);\n",
     "a newline in a name begins a field of the journal", ["tests/run/test_audit_journal.py", "-k", "forges_no_field"]),
    ("calls-of-others", "jail/server/gate_tools.c",
     "r && r->connection == c && r->with_tools ? r : NULL", "r && r->with_tools ? r : NULL",
     "every client that knows a run's id stops its clock and writes calls into its audit", ["tests/python/test_tools_jail.py", "-k", "another_connection"]),
    ("clock-stands-for-ever", "jail/spec/record/wall_clock.h",
     "	double most   = (double)l->tool_wait_ms;", "	double most   = 1e12;",
     "a call of a tool stops the wall clock for as long as it likes", ["tests/python/test_tools_jail.py", "-k", "no_longer_than_the_limit and ready"]),
    ("more-waiting-by-lease", "jail/runner/runner_spec.c",
     " && asked->tool_wait_ms <= w->tool_wait_ms_max &&\n", " &&\n",
     "a server that was taken over stops the clock of a ready cell for longer than the profile's ceiling", ["tests/service/test_leases.py", "-k", "waiting"]),
    ("sessions-for-ever", "jail/runner/runner.c",
     "if (request->ms == 0 || request->ms > w->lifetime_ms_max)", "if (request->ms == 0)",
     "a server that was taken over renews a session beyond the ceiling of its profile", ["tests/service/test_leases.py", "-k", "longer_than_the_ceiling or renewed"]),
    ("renewed-for-ever", "jail/server/sessions/session.c",
     "if (age > most || lifetime_ms > most - age)", "if (lifetime_ms > most)",
     "a session that is renewed again and again outlives the ceiling of its profile", ["tests/service/test_session_calls.py", "-k", "no_renewal"]),
    ("directories-as-tools", "jail/messages/run_spec_file.c",
     "	if (fd < 0 || (has_socket_option(fd, SO_DOMAIN", "	if (fd >= 0 || (has_socket_option(fd, SO_DOMAIN",
     "a server that was taken over hands a program a directory of the host", ["tests/unit/test_run_spec_file.c"]),
    ("surroundings-stay", "jail/guest/context.py",
     "self.point_to_kept, self.put_back, self.close_all", "self.point_to_kept, self.close_all",
     "a call has the variables and the directory of the one before", ["tests/service/test_session_calls.py", "-k", "variables_and_a_directory_of_its_own"]),
    ("paths-over-links", "jail/guest/session_files.py",
     "below = open_at(part, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, dir_fd=folder)", "below = open_at(part, O_DIRECTORY | O_CLOEXEC, dir_fd=folder)",
     "a rename or a removal follows a link of a program out of /workspace", ["tests/attack/test_session_attacks.py", "-k", "renamed_removed"]),
    ("stale-pyc", "jail/guest/session_files.py",
     "        drop_bytecode(folder, last)\n", "",
     "a module that was replaced runs from the bytecode of the old one", ["tests/jail/test_guest_files.py", "-k", "put_again"]),
    ("tools-without-judge", "python/brig/bridge.py",
     "        if not may:\n            raise _Failure(\"denied\", self.box.why_denied(job.name))\n", "",
     "a call that is not allowed is made", ["tests/python/test_tools.py", "-k", "judged_outside"]),
    ("turns-stop-the-clock", "python/brig/bridge.py",
     "            return next(iter(self._begun.values())).started if self._begun else None", "            return next(iter(self._jobs.values())).started if self._jobs else None",
     "a program that reads no answers stops its wall clock", ["tests/python/test_tools_jail.py", "-k", "waits_for_itself and private"]),
    ("lines-of-any-size", "python/brig/bridge.py",
     "            if self._length > LINE_MAX:\n                raise _Broken(f\"a line of more than {LINE_MAX} bytes\")\n", "",
     "a program fills the memory of its client with one line", ["tests/python/test_tools_hostile.py", "-k", "hundred_megabytes"]),
    ("forks-keep-the-bridge", "jail/guest/tools.py",
     "    register_at_fork(after_in_child=bridge.leave)\n", "",
     "a fork of a program reads the answers of its parent", ["tests/python/test_tools.py", "-k", "forked_child"]),
    # --- the floors below, and beside
    ("unsealed-program", "common/io/sealed.c",
     "	if ((seals & SEALS) != SEALS)", "	if ((seals & SEALS) == 0)",
     "a program's text may change after it was looked at", ["tests/service/test_talks.py", "-k", "own and sealed"]),
    ("messages-of-any-size", "common/json/wire.c",
     "	if (len == 0 || len > max) {", "	if (len == 0) {",
     "JSON is parsed however long it is", ["tests/unit/test_program_report.c"]),
    ("escapes-reach-terminal", "common/text.c",
     "(c >= 0x7f && c < 0xa0)", "c == 0x7f",
     "what others have written may begin a terminal's escape sequence", ["tests/unit/test_text.c"]),
    ("no-end-of-output", "common/client/stream.c",
     "	return s->seen > FLOOD_FACTOR * s->keep ? STREAM_FLOOD : STREAM_GOES_ON;", "	return STREAM_GOES_ON;",
     "a flood of output is read on and on", ["tests/unit/test_stream.c"]),
    ("setuid-in-rootfs", "rootfs-builder/lint.c",
     "	{ \"setid\",      entry_is_not_setid,\n\t  \"no setuid or setgid files: starting a program must not give rights\" },\n", "",
     "a set-uid program is published in a rootfs", ["tests/rootfs/test_rootfs_lint.py", "-k", "setuid"]),
    ("rootfs-removed-in-use", "rootfs-builder/gc.c",
     "	return errno == EWOULDBLOCK ? LOCK_USED : LOCK_FAILED;", "	return errno == EWOULDBLOCK ? LOCK_OURS : LOCK_FAILED;",
     "the collection takes a rootfs away from running programs", ["tests/rootfs/test_rootfs_store.py", "-k", "gc_keeps_a_tree_in_use"]),
    ("any-host", "mcp/http/http_admission.c",
     "	return inet_host_is_loopback(name) || list_has_name(a->allow_host, host)", "	return true || inet_host_is_loopback(name) || list_has_name(a->allow_host, host)",
     "a web page reaches the MCP server by a name of its own (DNS rebinding)", ["tests/unit/test_http_admission.c"]),
    ("proxy-for-one-run", "jail/proxy/cpu_share.c",
     "	uint64_t most = runs > 1 ? BESIDE_OTHERS : CPU_WHOLE;", "	uint64_t most = CPU_WHOLE;",
     "a run that floods brig-proxy keeps it from all other runs of its profile", ["tests/unit/test_cpu_share.c"]),
    ("any-token", "common/http/http_digest.c",
     "	return !differ;", "	return true;",
     "every bearer token is the right one", ["tests/mcp/test_mcp_http_life.py", "-k", "published_sequence"]),
    ("any-session", "mcp/protocol/call.c",
     "strcmp(own->session, ch->session) == 0", "true",
     "a client ends the calls of another that numbers its calls alike", ["tests/mcp/test_mcp_http_life.py", "-k", "its_own_session_only"]),
    ("queued-said-to-run", "mcp/reply/outcome.c",
     "	o->is_queued = x->run.state == RUN_WAITS;", "	o->is_queued = false;",
     "a queued call said to run", ["tests/mcp/test_mcp_sessions.py", "-k", "behind_which_execution"]),
    # --- tools of other servers
    ("deny-goes-last", "mcp/broker/tool_policy.c",
     "rows[] = { { p->deny, TOOL_DENY }, { p->ask, TOOL_ASK }, { p->allow, TOOL_ALLOW } };", "rows[] = { { p->allow, TOOL_ALLOW }, { p->ask, TOOL_ASK }, { p->deny, TOOL_DENY } };",
     "a tool that is allowed and denied is called", ["tests/mcp/test_broker_policy.py", "-k", "strictest_pattern"]),
    ("silence-is-harmless", "mcp/broker/catalog.c",
     "hint(definition, \"destructiveHint\", true)", "hint(definition, \"destructiveHint\", false)",
     "a tool that says nothing about itself is called without asking", ["tests/mcp/test_broker_policy.py", "-k", "strictest_pattern"]),
    ("consent-for-what-it-was", "mcp/broker/tool_call.c",
     "	return now && json_equal(now->definition, c->definition);", "	return now != NULL;",
     "a consent counts for a tool that has changed since", ["tests/mcp/test_broker_policy.py", "-k", "changes_between"]),
    ("any-question-answered", "mcp/broker/tool_bridge.c",
     " : i->call.consent == number))", " : true))",
     "a yes to one question is taken for the answer to another", ["tests/mcp/test_broker_policy.py", "-k", "asked_again_for"]),
    ("state-for-any-arguments", "mcp/runs/waiter.c",
     "		    json_equal(json_object_get(c->params, \"arguments\"), json_object_get(x->round_of, \"arguments\")))", "		    true)",
     "an answer to one call's question goes with the arguments of another", ["tests/mcp/test_broker_policy.py", "-k", "good_once"]),
    ("harmless-again", "mcp/broker/tool_server.c",
     "			t->read_only = false;", "			;",
     "a tool that destroys says later that it only reads, and is believed", ["tests/mcp/test_broker_policy.py", "-k", "harmless_later"]),
    ("secrets-in-the-log", "mcp/broker/tool_server.c",
     "	mask_values(text, s->entry->env);\n", "",
     "a server's environment is written into the log", ["tests/mcp/test_broker_hostile.py", "-k", "noisy"]),
    ("bridge-of-any-depth", "mcp/broker/bridge_line.c",
     "	if (wire_find_too_deep(line, len, BRIDGE_DEPTH))", "	if (0)",
     "a program nests as deep as it likes", ["tests/mcp/test_broker_hostile.py", "-k", "too_deep or broken_line"]),
    ("unchecked-owner", "common/io/trust.c",
     "(st->st_uid == 0 || st->st_uid == geteuid()) && !(st->st_mode", "!(st->st_mode",
     "root starts the commands of the user whose HOME it has", ["tests/mcp/test_mcp_settings.py", "-k", "sudo_has_left"]),
    ("hidden-files-come", "common/io/file_stream.c",
     "		if (*part == '.' && !pattern_names_hidden_part(", "		if (false && !is_spelt(",
     "out/.git/config comes out of a jail, and git runs the command that it names", ["tests/run/test_files.py", "-k", "other_programs_obey and private"]),
    ("bound-ends-in-yes", "mcp/broker/tool_schema.c",
     "if (++c->steps > CHECK_STEPS_MAX)", "if (++c->steps > CHECK_STEPS_MAX && false)",
     "arguments pass that come behind more values than are checked", ["tests/unit/test_argument_check.c"]),
    ("redirects-followed", "mcp/remote/remote_exchange.c",
     "CURLOPT_FOLLOWLOCATION, 0L", "CURLOPT_FOLLOWLOCATION, 1L",
     "a server at an address sends the headers elsewhere", ["tests/mcp/test_broker_http.py", "-k", "redirect"]),
    ("endpoint-of-any-origin", "mcp/remote/sse.c",
     "	else if (!has_same_origin(from, to))", "	else if (0)",
     "a server of HTTP+SSE has the headers posted to another host", ["tests/mcp/test_broker_sse.py", "-k", "another_origin"]),
)]

# --- the copy ---------------------------------------------------------------------------------------------

def listed():
    """What belongs to the tree, as it is now."""
    names = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "-co", "--exclude-standard"], capture_output=True, text=True, check=True).stdout
    return {name for name in names.split("\0") if name and (ROOT / name).is_file()}

def copy_tree(tree=TREE):
    """Only what differs is written, so that little is built again; a mutant that an end by force left is gone."""
    names = listed()
    for old in tree.rglob("*") if tree.exists() else ():
        name = old.relative_to(tree)
        if name.parts[0] != "build" and old.is_file() and str(name) not in names:
            old.unlink()
    for name in names:
        to = tree / name
        if not to.exists() or to.read_bytes() != (ROOT / name).read_bytes():
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to)
            os.utime(to) # newer than what was made of the one before

def copy_store(tree=TREE):
    """A mutant's jails may change what they should only read: they have a rootfs of their own."""
    store, link = tree / "build" / "store", "names/basic"
    if (store / link).is_symlink() and (store / link).readlink() == (host.store_dir() / link).readlink():
        return
    shutil.rmtree(store, ignore_errors=True)
    host.copy_rootfs("basic", store)

def build(tree=TREE, targets=()):
    """None, or what the compiler says."""
    made = [] if (tree / "build" / "build.ninja").exists() else [["cmake", "--preset", "dev", "-DBRIG_WERROR=OFF"]] # what a guard called may have no other caller
    for argv in [*made, ["ninja", "-C", "build", "--quiet", *targets]]:
        done = subprocess.run(argv, cwd=tree, capture_output=True, text=True)
        if done.returncode:
            return (done.stdout + done.stderr)[-2000:]
    return None

# --- the tests --------------------------------------------------------------------------------------------

def first_failed(report):
    """As pytest names it; None: nothing failed."""
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            path = case.get("classname").replace(".", "/")
            return f"{path.removesuffix('/c')}{'.c' if path.endswith('/c') else '.py'}::{case.get('name')}"
    return None

def run_tests(words):
    """(pytest's status, the first test that failed): status 0, all passed; 1, one did not; anything else is no judgement."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("BRIG_")}
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        argv = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=short", "-p", "no:cacheprovider", f"--junitxml={report.name}", *words]
        with subprocess.Popen(argv, cwd=TREE, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              start_new_session=True) as tests:
            try:
                said, _ = tests.communicate(timeout=HANGS)
            except subprocess.TimeoutExpired:
                os.killpg(tests.pid, signal.SIGKILL)
                return 1, f"no end after {HANGS} s"
        return tests.returncode, first_failed(report.name) if tests.returncode == 1 else said[-2000:]

def check_tests(mutants):
    """A test that fails anyway catches nothing."""
    for words in sorted({tuple(mutant.tests) for mutant in mutants}):
        status, said = run_tests(words)
        if status:
            sys.exit(f"mutants: without any mutant, pytest {' '.join(words)} ends with status {status}: {said}")

# --- one mutant -------------------------------------------------------------------------------------------

def check_rows(mutants, tree=ROOT):
    """What a row says of the tree must be so; returns what is not."""
    return [f"{mutant.name}: its text is {times} times in {mutant.file}" for mutant in mutants
            if (times := (tree / mutant.file).read_text().count(mutant.old)) != 1]

def try_mutant(mutant):
    """The test that caught it, or None."""
    path = TREE / mutant.file
    text = path.read_text()
    path.write_text(text.replace(mutant.old, mutant.new))
    try:
        broken = build()
        if broken:
            sys.exit(f"mutants: {mutant.name} cannot be built:\n{broken}")
        status, said = run_tests(mutant.tests)
    finally:
        path.write_text(text)
    if status not in (0, 1):
        sys.exit(f"mutants: {mutant.name}: pytest ends with status {status}: {said}")
    return said if status else None

# --- what is told -----------------------------------------------------------------------------------------

HEAD = """# Mutants

Guards that were broken one at a time, and the test that caught it: `./dev mutants` makes this page of `tools/mutants.py`, changes here are lost.
{date}, commit {commit}: {caught} of {all} caught.

| mutant | where | what is broken | caught by |
|---|---|---|---|
"""

def commit():
    def git(*words):
        return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True).stdout.strip()
    changed = git("status", "--porcelain", "--", ".", ":!docs/mutants.md")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + (" and changes" if changed else "")

def page(results):
    rows = [f"| {m.name} | `{m.file}` | {m.breaks} | {f'`{by}`' if by else '**nothing**'} |\n" for m, by in results]
    return HEAD.format(date=datetime.date.today(), commit=commit(), caught=sum(bool(by) for _, by in results), all=len(results)) + "".join(rows)

def chosen(names):
    unknown = set(names) - {mutant.name for mutant in MUTANTS}
    if unknown:
        sys.exit(f"mutants: no \"{sorted(unknown)[0]}\"; there are: {', '.join(mutant.name for mutant in MUTANTS)}")
    return [mutant for mutant in MUTANTS if not names or mutant.name in names]

def main():
    mutants, results, begun = chosen(sys.argv[1:]), [], time.monotonic()
    wrong = check_rows(mutants)
    if wrong:
        sys.exit("mutants: " + "\nmutants: ".join(wrong))
    copy_tree()
    broken = build()
    if broken:
        sys.exit(f"mutants: the tree cannot be built:\n{broken}")
    copy_store()
    check_tests(mutants)
    for mutant in mutants:
        since = time.monotonic()
        results.append((mutant, try_mutant(mutant)))
        print(f"{mutant.name:<24} {time.monotonic() - since:5.1f} s  {results[-1][1] or 'NOT CAUGHT'}", flush=True)
    build()
    if mutants == MUTANTS:
        PAGE.write_text(page(results))
    caught = sum(bool(by) for _, by in results)
    print(f"{caught} of {len(results)} caught, {time.monotonic() - begun:.0f} s")
    return caught != len(results)

if __name__ == "__main__":
    sys.exit(main())
