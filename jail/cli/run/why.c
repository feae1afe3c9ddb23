#include "why.h"

#include "call_number.h"
#include "network_summary.h"
#include "policy_floor.h"
#include "policy_value.h"
#include "profile_file.h"
#include "refused_call.h"
#include "refused_summary.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODULE_MAX = 80, NAMED_MAX = 3, HOSTS_MAX = 20 };

static bool is_killed_by_filter(const json_t *record)
{
	const char *signal = json_string_value(json_object_get(record, "signal"));

	return signal && strcmp(signal, "SIGSYS") == 0;
}

/*
 * The C library asks netlink for the interfaces when it resolves a name, so a refusal of that alone means that the program wanted to connect. What
 * there is to know is that it has no network.
 */
static bool refused_call_wanted_network(const json_t *record)
{
	const json_t *list = json_object_get(record, "refused"), *row = json_array_get(list, 0);
	const char   *call = json_string_value(json_object_get(row, "call")), *argument = json_string_value(json_object_get(row, "argument"));

	return json_is_null(json_object_get(record, "network")) && json_array_size(list) == 1 && call && argument && strcmp(call, "socket") == 0 &&
	       strcmp(argument, "AF_NETLINK") == 0;
}

/*
 * The module that the traceback at the end of stderr says is missing; "": none, or a part of a package that is there. The
 * program may have written anything.
 */
static const char *find_missing_module(const struct stream_last *last, char name[MODULE_MAX])
{
	static const char before[] = "ModuleNotFoundError: No module named '";
	char              text[STREAM_LAST + 1];
	size_t            n = last->n < STREAM_LAST ? last->n : STREAM_LAST;
	const char       *at, *found = NULL;

	for (size_t i = 0; i < n; i++)
		text[i] = last->text[(last->n - n + i) % STREAM_LAST];
	text[n] = 0;
	for (at = text; (at = strstr(at, before)); at += sizeof before - 1)
		found = at + sizeof before - 1;
	n = found ? strcspn(found, "'") : 0;
	if (n >= MODULE_MAX || strcmp(found ? found + n : "", "'\n") != 0)
		n = 0; /* it is not the last line */
	snprintf(name, MODULE_MAX, "%.*s", (int)n, found ? found : "");
	if (strchr(name, '.') || !text_is_module(name))
		*name = 0;
	return name;
}

static bool print_missing_module(const struct foreground_run *c, const char *op)
{
	char name[MODULE_MAX];

	if (!*find_missing_module(&c->run.err.stream.end, name))
		return false;
	if (c->request->layer.tree_fd >= 0)
		fprintf(stderr, "brig: no package of this run has %s; one more --with PACKAGE, or a line more in the requirements, adds it\n", name);
	else
		fprintf(stderr, "brig: %s is not in the rootfs, and a program installs nothing: brig %s --with %s finds a package of that name; --requirements FILE, those of a project\n",
			name, op, name);
	return true;
}

void why_print_line(const struct foreground_run *c, const json_t *record)
{
	const char *op = json_string_value(json_object_get(c->request->message, "op"));
	char        words[REFUSED_SUMMARY_MAX], hosts[NETWORK_SUMMARY_MAX];

	if (print_missing_module(c, op ? op : "run"))
		return;
	if (*network_print_summary(record, NAMED_MAX, hosts))
		fprintf(stderr, "brig: not reached: %s; brig %s --why lists all\n", hosts, op ? op : "run");
	if (!is_killed_by_filter(record) && refused_call_wanted_network(record)) {
		fputs("brig: this run has no network: its localhost is the jail itself, where only servers that the program has started can be reached; "
		      "--net HOST lets it reach a host outside\n", stderr);
		return;
	}
	refused_print_summary(record, NAMED_MAX, words);
	if (!*words && !is_killed_by_filter(record))
		return;
	fprintf(stderr, "brig: %s%s%s", is_killed_by_filter(record) ? "the jail ends with SIGSYS a program that calls by a foreign ABI" : "",
		*words && is_killed_by_filter(record) ? "; " : "", *words ? "the jail refused " : "");
	fprintf(stderr, "%s; brig %s --why lists all\n", words, op ? op : "run");
}

/* --- one policy --- */

struct reading {
	struct brig_paths    places;
	struct profile       profile;
	struct policy_bundle bundle;
	struct policy       *policy; /* NULL: it cannot be read */
};

static void policy_reading_done(struct reading *r)
{
	free(r->policy);
	policy_bundle_done(&r->bundle);
	profile_done(&r->profile);
}

static int read_profile_policy(struct reading *r, const char *name, struct err *e)
{
	struct policy *policy = malloc(sizeof *policy);

	if (!policy)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (brig_paths_find(&r->places, e) < 0 || profile_file_load(&r->profile, &r->places, name, e) < 0 ||
	    profile_policy_load(&r->bundle, &r->places, &r->profile, e) < 0 || policy_parse(policy, &r->bundle, call_number, e) < 0) {
		free(policy);
		return -1;
	}
	r->policy = policy;
	return 0;
}

/* --- one call --- */

struct call {
	int             number;
	struct bpf_look look;
};

/* The record comes from brigd, which may be newer and know more system calls than this program. */
static bool find_call_by_name(const json_t *row, struct call *ret)
{
	const char *name = json_string_value(json_object_get(row, "call")), *argument = json_string_value(json_object_get(row, "argument"));
	uint64_t    number;

	if (!name)
		return false;
	ret->number = text_to_u64(name, &number) == 0 && number < POLICY_CALLS ? (int)number : call_number(name);
	return ret->number >= 0 && ret->number < POLICY_CALLS &&
	       refused_call_parse(argument ? argument : "", &ret->look);
}

static void print_profiles(const struct brig_paths *places, const char *but, const struct call *c)
{
	struct err e;
	char     **names  = profile_list_names(places, &e);
	size_t     listed = 0;

	if (!names) {
		fprintf(stderr, "    which other profiles allow it is not known: %s\n", e.text);
		return;
	}
	for (size_t i = 0; names[i]; i++) {
		struct reading other = { 0 };
		struct err     unread;

		if (strcmp(names[i], but) != 0 && read_profile_policy(&other, names[i], &unread) == 0 && policy_may_allow(other.policy, (unsigned)c->number, &c->look))
			fprintf(stderr, "%s%s", listed++ ? ", " : "    allowed by these profiles: ", names[i]);
		policy_reading_done(&other);
	}
	profile_names_free(names);
	fputs(listed ? "; one of your own can allow it, too (brig-profile(5), policy_extend)\n" :
		       "    no other profile allows it; one of your own can (brig-profile(5), policy_extend)\n", stderr);
}

static void print_verdict(const struct reading *r, const json_t *row)
{
	struct policy_floor       floor = policy_floor_init(call_number);
	const struct policy_call *by;
	struct call               c;
	const char               *reason;

	if (!r->policy || !find_call_by_name(row, &c))
		return;
	reason = policy_floor_forbids_call(&floor, (unsigned)c.number, &c.look);
	if (reason) {
		fprintf(stderr, "    by the floor: %s; no profile can allow it\n", reason);
		return;
	}
	by = &r->policy->call[c.number];
	if (by->source >= 0)
		fprintf(stderr, "    by %s, line %u%s\n", r->policy->source[by->source], by->line,
			by->verdict == POLICY_WHEN ? ", which allows it with other arguments" : "");
	else
		fputs("    by default: no line of the policy names it\n", stderr);
	if (policy_may_allow(r->policy, (unsigned)c.number, &c.look))
		fputs("    the policy of this profile allows it here: the service that ran it has another one\n", stderr);
	else
		print_profiles(&r->places, r->profile.name, &c);
}

static void print_call(const struct reading *r, const json_t *row)
{
	json_int_t  count  = json_integer_value(json_object_get(row, "count"));
	const char *answer = json_string_value(json_object_get(row, "answer"));
	char        words[240], errnum[24];

	snprintf(errnum, sizeof errnum, "%s", answer ? answer : "?");
	text_make_plain(errnum);
	fprintf(stderr, "  %s: %" JSON_INTEGER_FORMAT " %s, answered with %s\n", refused_call_print_summary(row, words, sizeof words), count, count == 1 ? "time" : "times", errnum);
	print_verdict(r, row);
}

/* --- all --- */

static void print_calls(const struct reading *r, const json_t *record)
{
	const json_t *list = json_object_get(record, "refused");
	size_t        n    = json_array_size(list);

	if (!json_is_array(list)) {
		fputs("brig: which calls the jail refused is not known: no program ran, or nothing could listen\n", stderr);
		return;
	}
	fprintf(stderr, "brig: the jail refused %s%s\n", n == 0 ? "no call" : n == 1 ? "one call" : "these calls", n == 0 ? "" : ":");
	for (size_t i = 0; i < n; i++)
		print_call(r, json_array_get(list, i));
}

static void print_kill(const struct policy *p)
{
	bool kills = !p;

	for (size_t i = 0; p && i < POLICY_CALLS; i++)
		kills |= p->call[i].verdict == POLICY_KILL;
	fprintf(stderr, "brig: SIGSYS: the jail kills for calls by a foreign ABI (i386, x32), which no profile can allow%s\n",
		kills ? ", and for calls that a policy kills for (brig explain)" : "");
}

static void print_limits(const struct foreground_run *c, const json_t *record)
{
	const json_t *hits = json_object_get(record, "limits_hit");
	char          limit[48];

	for (size_t i = 0; i < json_array_size(hits); i++) {
		const json_t *hit    = json_array_get(hits, i), *times = json_object_get(hit, "times");
		const char   *name   = json_string_value(json_object_get(hit, "name"));
		const char   *option = name ? limits_option_name(name) : NULL;

		if (!option)
			continue;
		fprintf(stderr, "brig: the limit %s of %" JSON_INTEGER_FORMAT " refused something", name, json_integer_value(json_object_get(hit, "value")));
		if (json_is_integer(times))
			fprintf(stderr, " %" JSON_INTEGER_FORMAT " times", json_integer_value(times));
		fprintf(stderr, "; --%s asks for more\n", option);
	}
	if (*foreground_run_print_hit_limit(c, limit, sizeof limit))
		fprintf(stderr, "brig: the limit %s ended the run; the same option asks for more\n", limit);
}

/* Names each host that was not reached, and what would allow it. */
static void print_network(const json_t *record)
{
	char hosts[NETWORK_SUMMARY_MAX];

	if (!json_is_object(json_object_get(record, "network")))
		return;
	if (*network_print_summary(record, HOSTS_MAX, hosts))
		fprintf(stderr, "brig: not reached: %s; where it says not_allowed, --net HOST or network.allow of the profile allows it\n", hosts);
	else
		fputs("brig: no host was refused or failed\n", stderr);
}

void why_print_all(const struct foreground_run *c, const json_t *record)
{
	struct reading r = { 0 };
	struct err     e;

	if (read_profile_policy(&r, c->request->profile, &e) < 0)
		fprintf(stderr, "brig: the reasons cannot be read: %s\n", e.text);
	if (is_killed_by_filter(record))
		print_kill(r.policy);
	if (!is_killed_by_filter(record) || json_array_size(json_object_get(record, "refused")))
		print_calls(&r, record);
	print_network(record);
	print_limits(c, record);
	fputs("brig: not in this list: refusals by file modes and Landlock, missing files, and calls answered with ENOSYS\n", stderr);
	policy_reading_done(&r);
}
