#define _GNU_SOURCE
#include "run_plan.h"

#include "device_kind.h"
#include "fd.h"
#include "file.h"
#include "libexec.h"
#include "program_env.h"
#include "proxy_protocol.h"
#include "guest_runner.h"
#include "sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- limits --- */

/* With its unit: people type seconds, programs send milliseconds. */
static void print_limit_with_unit(const struct field *f, uint64_t value, char *buf, size_t len)
{
	char text[32];

	field_print_text(f, value, text, sizeof text);
	snprintf(buf, len, f->type == FIELD_MS ? "%s s" : "%s", text);
}

static int deny_above_ceiling(const struct limits *l, const struct served_profile *profile, const struct field *f,
			      struct denial *why)
{
	char        field[64], is[40], most[40], asked[40];
	const char *quote = f->type == FIELD_MS || f->type == FIELD_SIZE ? "\"" : "";

	snprintf(field, sizeof field, "limits.%s", f->name);
	print_limit_with_unit(f, limits_value(l, f), is, sizeof is);
	print_limit_with_unit(f, limits_value(&profile->profile.ceilings, f), most, sizeof most);
	field_print_text(f, limits_value(l, f), asked, sizeof asked);
	return deny(why, DENIAL_above_ceiling, field,
		    "%s is above the ceiling %s of profile %s; %s can allow it: write {\"extends\": \"%s\", \"ceilings\": {\"%s\": %s%s%s}} "
		    "into %s",
		    is, most, profile->name, profile->is_private ? "you" : "who administers this service", profile->name, f->name, quote,
		    asked, f->type == FIELD_MS ? "s\"" : quote,
		    profile->is_private ? "DIR/NAME.json, and set BRIG_PROFILES=DIR and -p NAME" : "/etc/brig/profiles/NAME.json, and type brig reload; then -p NAME");
}

int run_plan_apply_limits(struct limits *l, const struct served_profile *profile, const json_t *asked,
			  struct denial *why)
{
	const struct field *above;
	struct err          e;

	if (asked && fields_decode(limits_fields, asked, l, &e) < 0)
		return deny_setting(why, DENIAL_bad_field, "limits", &e);
	above = limits_find_above_ceiling(l, &profile->profile.ceilings);
	return above ? deny_above_ceiling(l, profile, above, why) : 0;
}

static int plan_limits(struct run_plan *p, bool is_resolve, const json_t *asked, const json_t *allow_missing, struct denial *why)
{
	uint64_t   waived;
	struct err e;

	/* pip unpacks in /workspace, which counts as memory: all that the profile can give */
	p->limits = is_resolve ? p->profile->profile.ceilings : p->profile->profile.limits;
	p->limits.waived = p->profile->profile.limits.waived;
	if (run_plan_apply_limits(&p->limits, p->profile, asked, why) < 0)
		return -1;
	if (limits_parse_waived(allow_missing, &waived, &e) < 0)
		return deny_err(why, DENIAL_bad_field, "allow_missing", &e);
	p->limits.waived |= waived;
	p->limits.must = limits_asked_layers(asked) & ~p->limits.waived;
	return 0;
}

/* --- packages --- */

static int deny_packages(const struct served_profile *profile, const char *field, struct denial *why)
{
	return deny(why, DENIAL_denied, field,
		    "profile %s takes packages from nowhere; %s can allow it: write {\"extends\": \"%s\", \"packages\": {\"index\": \"" PACKAGES_INDEX
		    "\"}} into %s",
		    profile->name, profile->is_private ? "you" : "who administers this service", profile->name,
		    profile->is_private ? "DIR/NAME.json, and set BRIG_PROFILES=DIR and -p NAME" : "/etc/brig/profiles/NAME.json, and type brig reload; then -p NAME");
}

/* Whether the profile lets its runs have packages that were not in the rootfs when it was built. */
static bool profile_allows_packages(const struct served_profile *p)
{
	return p->profile.has_packages ? p->profile.packages.index || p->profile.packages.find_links : p->is_private;
}

static bool has_ro_named(const struct protocol_request *r, const char *name)
{
	for (size_t i = 0; i < json_array_size(r->ro); i++)
		if (strcmp(json_string_value(json_array_get(r->ro, i)), name) == 0)
			return true;
	return false;
}

/* The index that a run of the mode resolve uses; "": none, the wheels are in the directory that its ro shows as wheels. */
static int find_index(const struct run_plan *p, const struct protocol_request *r, const char **ret, struct denial *why)
{
	const struct package_settings *s = &p->profile->profile.packages;

	if (!profile_allows_packages(p->profile))
		return deny_packages(p->profile, "packages", why);
	*ret = r->index ? r->index : has_ro_named(r, "wheels") ? "" : s->index ? s->index : p->profile->is_private && !s->find_links ? PACKAGES_INDEX : "";
	if (!p->profile->is_private && r->index && (!s->index || strcmp(r->index, s->index) != 0))
		return deny(why, DENIAL_above_ceiling, "index", "profile %s takes packages from %s alone; who administers this service can add a profile with another index",
			    p->profile->name, s->index ? s->index : "a directory");
	return 0;
}

static int plan_resolve(struct run_plan *p, const struct protocol_request *r, struct denial *why)
{
	const char *index = "";

	if (find_index(p, r, &index, why) < 0)
		return -1;
	p->resolve_args = json_pack("[s]", index);
	if (!p->resolve_args || (r->packages && json_array_extend(p->resolve_args, (json_t *)r->packages) < 0))
		return deny(why, DENIAL_broken, NULL, "out of memory");
	return 0;
}

/* --- what is shown --- */

struct link {
	char path[32];
};

/* Leads to what the descriptor refers to. */
static struct link proc_fd_link(int fd)
{
	struct link link;

	snprintf(link.path, sizeof link.path, "/proc/self/fd/%d", fd);
	return link;
}

/*
 * Memory files, namespaces and pidfds are regular files to statx(). A mount of one would hand it to the program; what
 * can be shown has a path.
 */
static bool fd_has_path(int fd)
{
	static const char gone[] = " (deleted)";
	char              path[PATH_MAX];
	ssize_t           n = readlinkat(AT_FDCWD, proc_fd_link(fd).path, path, sizeof path - 1);

	if (n <= 0)
		return false;
	path[n] = 0;
	return path[0] == '/' && !((size_t)n >= sizeof gone - 1 && strcmp(path + n + 1 - sizeof gone, gone) == 0);
}

/*
 * In place: a descriptor that can only be mounted. The close of an open file can wait for the server of its file
 * system, and later processes serve many users.
 */
static int reopen_as_o_path(int fd)
{
	scoped_fd path_only = -1;
	int       flags     = fcntl(fd, F_GETFL);

	if (flags < 0 || flags & O_PATH)
		return flags < 0 ? -1 : 0;
	path_only = open(proc_fd_link(fd).path, O_PATH | O_CLOEXEC);
	return path_only < 0 || dup3(path_only, fd, O_CLOEXEC) < 0 ? -1 : 0;
}

/* Asks only for what the kernel has by itself: the server of the file system (FUSE, NFS) could make the server wait. */
static int check_ro_bind(int fd, size_t i, struct denial *why)
{
	char         field[32];
	struct statx st;

	snprintf(field, sizeof field, "ro[%zu]", i);
	if (file_stat_type(fd, &st) < 0 || !mount_can_ro_bind(st.stx_mode))
		return deny(why, DENIAL_bad_descriptors, field, "is neither a directory nor a regular file");
	if (S_ISREG(st.stx_mode) && !fd_has_path(fd))
		return deny(why, DENIAL_bad_descriptors, field, "is a file without a name");
	if (device_is_kernel_file_system(st.stx_dev_major, st.stx_dev_minor))
		return deny(why, DENIAL_denied, field, "holds what the kernel tells of the host, no files");
	if (reopen_as_o_path(fd) < 0)
		return deny(why, DENIAL_broken, field, "cannot be shown: %m");
	return 0;
}

/* A directory only: Python would take a file for an archive of modules. */
static int plan_layer(struct run_plan *p, int fd, struct denial *why)
{
	struct statx st;

	if (!profile_allows_packages(p->profile))
		return deny_packages(p->profile, "layer", why);
	if (file_stat_type(fd, &st) < 0 || !S_ISDIR(st.stx_mode))
		return deny(why, DENIAL_bad_descriptors, "layer", "is not a directory");
	if (device_is_kernel_file_system(st.stx_dev_major, st.stx_dev_minor))
		return deny(why, DENIAL_denied, "layer", "holds what the kernel tells of the host, no files");
	if (reopen_as_o_path(fd) < 0)
		return deny(why, DENIAL_broken, "layer", "cannot be shown: %m");
	if (p->shown_len == MOUNT_SHOWN_MAX)
		return deny(why, DENIAL_bad_field, "ro", "with a layer at most %d names", MOUNT_SHOWN_MAX - 1);
	p->shown[p->shown_len] = strdup(MOUNT_LAYER);
	return p->shown[p->shown_len] ? (int)(p->shown_len++, 0) : deny(why, DENIAL_broken, NULL, "out of memory");
}

static int plan_ro_binds(struct run_plan *p, const json_t *names, const int *fds, struct denial *why)
{
	for (size_t i = 0; i < json_array_size(names); i++) {
		if (check_ro_bind(fds[i], i, why) < 0)
			return -1;
		if (asprintf(&p->shown[i], "workspace/%s", json_string_value(json_array_get(names, i))) < 0) {
			p->shown[i] = NULL;
			return deny(why, DENIAL_broken, NULL, "out of memory");
		}
		p->shown_len++;
	}
	return 0;
}

static bool socket_option_is(int fd, int option, int want)
{
	int       value;
	socklen_t len = sizeof value;

	return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 && value == want;
}

/* A Unix stream socket that is connected. The monitor checks that the other end has no name, as in a socketpair(). */
static int check_files_socket(int fd, struct denial *why)
{
	struct ucred peer = { .pid = 0 };
	socklen_t    len  = sizeof peer;

	if (socket_option_is(fd, SO_DOMAIN, AF_UNIX) && socket_option_is(fd, SO_TYPE, SOCK_STREAM) &&
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.pid > 0)
		return 0;
	return deny(why, DENIAL_bad_descriptors, "files", "is no end of socketpair(AF_UNIX, SOCK_STREAM)");
}

/* What cannot be mounted is refused here; the process that builds the cell makes the plan of it. */
static int check_mount_plan(const struct run_plan *p, bool terminals, struct denial *why)
{
	struct mount_options mount_options = mount_options_from_limits(&p->limits, p->profile->profile.workspace_exec);
	struct mount_plan   ignored;
	struct err          e;

	mount_options.terminals = terminals;
	mount_options.shown = (const char *const *)p->shown;
	mount_options.shown_len = p->shown_len;
	return mount_plan_build(&ignored, &mount_options, &e) < 0 ? deny_err(why, DENIAL_bad_field, "ro", &e) : 0;
}

/* --- arguments --- */

enum { PATHS = 3 };

struct command {
	char *path[PATHS + 1];
	char *argv[GUEST_RUNNER_ARGS_MAX + PROTOCOL_ARGS_MAX + 1];
	struct guest_runner_args runner; /* these words are in argv */
	const char *python[4];
	char       *main; /* with cwd: the absolute path of the program, in place of the one in python */
};

static void command_done(struct command *c)
{
	for (size_t i = 0; i < PATHS; i++)
		free(c->path[i]);
	guest_runner_args_done(&c->runner);
	free(c->main);
}

static int find_program_paths(struct command *c, const char *name)
{
	static const char *const folders[] = { "/usr/local/bin", "/usr/bin", "/bin" };

	if (strchr(name, '/'))
		return (c->path[0] = strdup(name)) ? 0 : -1;
	for (size_t i = 0; i < ARRAY_LEN(folders); i++)
		if (asprintf(&c->path[i], "%s/%s", folders[i], name) < 0) {
			c->path[i] = NULL;
			return -1;
		}
	return 0;
}

/* argv borrows the texts of the request. */
static int fill_argv(struct command *c, const char *const *first, const json_t *args, const char *field, struct denial *why)
{
	size_t n = 0, bytes = 0;

	for (; first[n]; n++)
		c->argv[n] = (char *)first[n];
	for (size_t i = 0; i < json_array_size(args); i++) {
		const json_t *arg = json_array_get(args, i);

		bytes += json_string_length(arg) + 1;
		c->argv[n++] = (char *)json_string_value(arg);
	}
	if (bytes > 128 * KIB)
		return deny(why, DENIAL_bad_field, field, "at most %d arguments, with 128K in all", PROTOCOL_ARGS_MAX);
	return 0;
}

static const char *runner_mode(const struct protocol_request *r)
{
	if (r->kind == REQUEST_open)
		return "session";
	return r->mode == MODE_report && r->takes_additions ? "report-written" : run_mode_name((enum run_mode)r->mode);
}

/* What comes before the arguments of the request. */
static int find_leading_args(struct command *c, const struct profile *p, const struct protocol_request *r,
			     const char *const **ret, struct denial *why)
{
	static const char *const  nothing[] = { NULL };
	bool                      is_open   = r->kind == REQUEST_open;
	struct guest_runner_lists lists     = { r->imports, p->modules, p->calls, r->main, r->has_tools || is_open };
	struct err                e;

	*ret         = r->kind == REQUEST_exec ? nothing : r->mode == MODE_script && !is_open ? c->python : c->runner.arg;
	c->python[0] = "python3";
	c->python[1] = r->main ? "-Es" : "-I"; /* -I without -P: the program's own directory is the first of sys.path */
	c->python[2] = r->main ? r->main : "main.py";
	if (r->cwd &&
	    asprintf(&c->main, "/workspace/%s", r->mode == MODE_script ? c->python[2] : r->main ? r->main : "") < 0) {
		c->main = NULL;
		return deny(why, DENIAL_broken, NULL, "out of memory");
	}
	if (r->cwd)
		c->python[2] = lists.main = c->main;
	if ((r->mode != MODE_script || is_open) && guest_runner_args_build(&c->runner, runner_mode(r), &lists, &e) < 0)
		return deny_err(why, DENIAL_broken, NULL, &e);
	return 0;
}

/* resolve: the arguments of the mode resolve, or NULL. */
static int plan_command(struct command *c, const struct profile *p, const struct protocol_request *r, const json_t *resolve,
			struct denial *why)
{
	bool               is_run = r->kind != REQUEST_exec;
	const char *const *first;
	const char        *name   = is_run ? "/usr/bin/python3" : json_string_value(json_array_get(r->argv, 0));

	if (!*name)
		return deny(why, DENIAL_bad_field, "argv[0]", "nothing to run");
	if (find_program_paths(c, name) < 0)
		return deny(why, DENIAL_broken, NULL, "out of memory");
	if (find_leading_args(c, p, r, &first, why) < 0)
		return -1;
	return fill_argv(c, first, resolve ? resolve : is_run ? r->args : r->argv, resolve ? "packages" : is_run ? "args" : "argv", why);
}

static int add_env_of_request(struct program_env *env, const json_t *added, struct denial *why)
{
	struct err e;
	char       field[32];

	for (size_t i = 0; i < json_array_size(added); i++) {
		snprintf(field, sizeof field, "env[%zu]", i);
		if (program_env_add(env, json_string_value(json_array_get(added, i)), &e) < 0)
			return deny_err(why, DENIAL_bad_field, field, &e);
	}
	return 0;
}

int run_plan_build_call_env(struct program_env *env, const struct limits *limits, const json_t *added,
			    struct denial *why)
{
	struct err e;

	return program_env_init(env, limits, &e) < 0 ? deny_err(why, DENIAL_broken, NULL, &e) :
		add_env_of_request(env, added, why);
}

/* A variable of the client replaces brig's of the same name. */
static int plan_env(struct program_env *env, const struct run_plan *p, const struct protocol_request *r,
		    struct denial *why)
{
	const struct net_policy *policy = p->profile->profile.net;
	/* Does brig-proxy read TLS of this run? If so, a private run has a CA of its own. */
	bool       is_read = p->profile->is_private ? p->net.trust_fd >= 0 : net_policy_needs_inspection(policy);
	struct err e;
	char       tools[24];

	if (program_env_init(env, &p->limits, &e) < 0 || (p->net_rules && program_env_add_network(env, policy, is_read, &e) < 0))
		return deny_err(why, DENIAL_broken, NULL, &e);
	if (add_env_of_request(env, r->env, why) < 0)
		return -1;
	/* The guest runner gets the number of the socket to the tools in an argument instead. */
	if (!r->has_tools || (r->kind != REQUEST_exec && r->mode != MODE_script))
		return 0;
	snprintf(tools, sizeof tools, "BRIG_TOOLS=%d", TOOLS_FD);
	return program_env_add(env, tools, &e) < 0 ? deny_err(why, DENIAL_bad_field, "env", &e) : 0;
}

static int plan_exec_args(struct run_plan *p, const struct protocol_request *r, struct denial *why)
{
	struct command     c   = { 0 };
	struct program_env env = { 0 };
	struct err         e;
	int                done;

	done = plan_command(&c, &p->profile->profile, r, p->resolve_args, why);
	if (done == 0)
		done = plan_env(&env, p, r, why);
	if (done == 0 && exec_args_pack(&p->exec_args, &p->exec_text, (const char *const *)c.path, r->cwd, c.argv, env.entry, &e) < 0)
		done = e.kind == ERR_BAD_SPEC ? deny_err(why, DENIAL_bad_field, NULL, &e) :
		                                deny(why, DENIAL_broken, NULL, "set-up step pack-words: %s", e.text);
	command_done(&c);
	program_env_done(&env);
	return done;
}

/* --- all of it --- */

/*
 * Ready cells wait for a main.py. A session has no program, and gets a comment; an empty program becomes a newline,
 * which does nothing either.
 */
static int plan_own_code(struct run_plan *p, const char *text, struct denial *why)
{
	struct err e;

	program_text_close(&p->code);
	p->code     = (struct program_text){ .text = strdup(text), .len = strlen(text) };
	p->own_code = p->code.text ? sealed_create("brig-own-code", text, strlen(text), &e) : -1;
	return p->own_code < 0 ? deny(why, DENIAL_broken, NULL, "a program of its own cannot be made") : 0;
}

/* --- the network --- */

/* policy: what brig-proxy compares the rules with, in a private run. */
static int open_network(struct run_plan *p, const struct brig_paths *places, const struct net_policy *policy, const struct net_rules *rules,
			struct denial *why)
{
	scoped_fd  program = -1;
	struct err e;

	if (!rules->n)
		return 0;
	if (p->profile->is_private && profile_check_network_filter(p->profile, places, &e) < 0)
		return deny_err(why, DENIAL_denied, "network", &e);
	/* Without brig-proxy the program would run and reach nothing. (A service without it does not start.) */
	if (p->profile->is_private && (program = libexec_open(places, PROXY_PROGRAM, &e)) < 0) {
		err_wrap(&e, "brig-proxy, which a network needs");
		return deny_err(why, DENIAL_broken, NULL, &e);
	}
	if (p->profile->is_private && net_config_make(&p->net, places, policy, rules, &e) < 0)
		return deny_err(why, e.kind == ERR_BAD_SPEC || e.kind == ERR_MISSING ? DENIAL_missing : DENIAL_broken, NULL, &e);
	p->net_rules = malloc(net_rules_size(rules));
	if (!p->net_rules)
		return deny(why, DENIAL_broken, NULL, "out of memory");
	memcpy(p->net_rules, rules, net_rules_size(rules));
	net_rules_collect_ports(rules, p->listeners.port, &p->listeners.ports);
	return 0;
}

/*
 * Of a run of the mode resolve: the profile's rules for packages or, in a private run, those of the index that was asked
 * for; and what its request asks for, as in any run.
 */
static int grant_index_rules(const struct run_plan *p, const struct protocol_request *r, struct net_rules *ret, struct denial *why)
{
	const struct served_profile *profile = p->profile;
	const struct net_policy     *policy  = profile->profile.net;
	const char                  *index   = json_string_value(json_array_get(p->resolve_args, 0));
	bool                         is_profiles = policy && profile->profile.packages.index && strcmp(index, profile->profile.packages.index) == 0;
	struct err                   e;

	ret->n = 0;
	if (!*index)
		return 0;
	if (r->network && !profile->is_private)
		return deny(why, DENIAL_bad_field, "network", "with the mode \"resolve\" a service allows the hosts of the profile's packages alone");
	if (r->network && net_policy_grant_rules(policy, profile->name, true, r->network, ret, why) < 0)
		return -1;
	if (is_profiles && ret->n + policy->packages.n <= NET_RULES_MAX) {
		net_rules_append(ret, &policy->packages);
		return 0;
	}
	return net_policy_add_index(index, ret, &e) < 0 ? deny_err(why, DENIAL_bad_field, "index", &e) : 0;
}

/* pip reaches the index in place of what the program may reach, and brig-proxy adds no secrets to what it sends. */
static int plan_index_network(struct run_plan *p, const struct brig_paths *places, const struct protocol_request *r, struct denial *why)
{
	const struct net_policy *of_profile = p->profile->profile.net;
	struct net_policy       *bare  = calloc(1, sizeof *bare);
	struct net_rules        *rules = malloc(sizeof *rules); /* both are too large for a stack */
	int                      done  = bare && rules ? grant_index_rules(p, r, rules, why) : deny(why, DENIAL_broken, NULL, "out of memory");

	if (done == 0 && of_profile) {
		net_rules_copy(&bare->deny, &of_profile->deny);
		bare->upstream = of_profile->upstream;
	}
	done = done < 0 ? -1 : open_network(p, places, bare, rules, why);
	free(rules);
	free(bare);
	return done;
}

static int plan_network(struct run_plan *p, const struct brig_paths *places, const struct protocol_request *r, struct denial *why)
{
	const struct net_policy *policy = p->profile->profile.net;
	struct net_rules        *rules;
	int                      done;

	if (p->resolve_args)
		return plan_index_network(p, places, r, why);
	if ((!policy && !r->network) || (r->kind == REQUEST_run && r->mode == MODE_check))
		return 0;
	rules = malloc(sizeof *rules); /* too large for a stack */
	if (!rules)
		return deny(why, DENIAL_broken, NULL, "out of memory");
	done = net_policy_grant_rules(policy, p->profile->name, p->profile->is_private, r->network, rules, why);
	done = done < 0 ? -1 : open_network(p, places, policy, rules, why);
	free(rules);
	return done;
}

static int run_plan_fill(struct run_plan *p, const struct brig_paths *places, const struct protocol_request *r, const int *fds, struct denial *why)
{
	bool has_code = r->kind == REQUEST_run;

	if (r->kind == REQUEST_open && plan_own_code(p, "# a session\n", why) < 0)
		return -1;
	if (plan_limits(p, has_code && r->mode == MODE_resolve, r->limits, r->allow_missing, why) < 0 ||
	    (has_code && program_text_open(&p->code, fds[0], why) < 0))
		return -1;
	if (has_code && !p->code.len && plan_own_code(p, "\n", why) < 0)
		return -1;
	if (has_code && r->mode == MODE_resolve && plan_resolve(p, r, why) < 0)
		return -1;
	if (plan_ro_binds(p, r->ro, fds + has_code, why) < 0 ||
	    (r->has_layer && plan_layer(p, fds[has_code + p->shown_len], why) < 0) ||
	    (r->has_files && check_files_socket(fds[has_code + p->shown_len], why) < 0) ||
		    check_mount_plan(p, r->terminal, why) < 0 ||
	    plan_network(p, places, r, why) < 0)
		return -1;
	return plan_exec_args(p, r, why);
}

int run_plan_build(struct run_plan *ret, const struct brig_paths *places, const struct served_profile *profile,
		   const struct protocol_request *request, const int *fds, struct denial *why)
{
	*ret         = RUN_PLAN_NONE;
	ret->profile = profile;
	if (run_plan_fill(ret, places, request, fds, why) == 0)
		return 0;
	run_plan_done(ret);
	return -1;
}

void run_plan_done(struct run_plan *p)
{
	while (p->shown_len)
		free(p->shown[--p->shown_len]);
	exec_args_close(&p->exec_args);
	free(p->exec_text);
	program_text_close(&p->code);
	json_decref(p->resolve_args);
	p->resolve_args = NULL;
	free(p->net_rules);
	p->net_rules = NULL;
	net_config_close(&p->net);
	fd_closep(&p->own_code);
}
