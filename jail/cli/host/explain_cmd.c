/* explain_cmd.c - brig explain: what a profile means, layer by layer, without running anything */
#define _GNU_SOURCE
#include "call_number.h"
#include "child_table.h"
#include "color.h"
#include "command.h"
#include "layer.h"
#include "mount_plan.h"
#include "option.h"
#include "policy.h"
#include "profile_file.h"
#include "program_env.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct explain {
	bool                 json, all;
	struct brig_paths    places;
	struct profile       profile;
	struct policy_bundle bundle;
	struct policy       *policy;
	struct mount_plan    mounts;
	struct program_env   env;
	unsigned             place; /* of the profile's file, in places.profiles */
};

static const struct option_row options[] = {
	OPTION_SWITCH("all", 'a', offsetof(struct explain, all), "Also print what each layer is for, mounts, environment, modules, set-up steps and system calls"),
	OPTION_SWITCH("json", 0, offsetof(struct explain, json), "Print everything as one JSON object"),
	OPTION_END,
};
static const struct command_help help = {
	"brig explain [OPTION]... [PROFILE]",
	"Print what a profile gives a run: its limits, its layers, and with --all everything. Default: basic.",
	NULL,
};

static const char *layer_need_words(enum layer_need need)
{
	static const char *const words[] = {
		[NEED_ALWAYS] = "always", [NEED_ROOT] = "as root", [NEED_WHERE_PRESENT] = "where present",
	};

	return words[need];
}

static int load_profile_to_explain(struct explain *x, const char *name, struct err *e)
{
	struct mount_options mount_options;

	x->policy = malloc(sizeof *x->policy);
	if (!x->policy)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (brig_paths_find(&x->places, e) < 0 || profile_file_load(&x->profile, &x->places, name, e) < 0 ||
	    profile_policy_load(&x->bundle, &x->places, &x->profile, e) < 0 || policy_parse(x->policy, &x->bundle, call_number, e) < 0)
		return -1;
	x->place = profile_file_find(&x->places, name);
	if (x->place == PROFILES_PLACES)
		return err_set(e, ERR_MISSING, "profile %s: its file was removed", name);
	mount_options = mount_options_from_limits(&x->profile.limits, x->profile.workspace_exec);
	if (mount_plan_build(&x->mounts, &mount_options, e) < 0)
		return -1;
	return program_env_build(&x->env, &x->profile.limits, NULL, 0, e);
}

/* --- for people --- */

static void print_limit_value(const struct limits *l, const struct field *f, FILE *out)
{
	char buf[32];

	field_print_value(f, limits_value(l, f), buf, sizeof buf);
	fprintf(out, " %10s", buf);
}

static void print_limits(const struct explain *x, FILE *out)
{
	fprintf(out, "\n%slimits                 default    ceiling   option%s\n", color_start_code(out, COLOR_HEADING), color_reset_code(out));
	for (const struct field *f = limits_fields; f->name; f++) {
		fprintf(out, "  %-17s", f->name);
		print_limit_value(&x->profile.limits, f, out);
		print_limit_value(&x->profile.ceilings, f, out);
		fprintf(out, "   --%s\n", limits_option_name(f->name));
	}
}

static void print_heading(const char *text, FILE *out)
{
	fprintf(out, "\n%s%s%s\n", color_start_code(out, COLOR_HEADING), text, color_reset_code(out));
}

static void print_warm_start(const struct explain *x, FILE *out)
{
	static const char *const how[] = {
		[WARM_NEVER]  = "each run executes a new Python",
		[WARM_DEMAND] = "a service forks each run from a warm Python, when the run is asked for",
		[WARM_READY]  = "a service keeps cells ready; in each waits a fork of a warm Python",
	};
	const struct profile *p = &x->profile;

	fprintf(out, "\nwarm      %s: %s\n", profile_warm_name(p->warm), how[p->warm]);
	if (p->warm == WARM_NEVER || !x->all)
		return;
	fputs("  preloaded", out);
	for (size_t i = 0; i < json_array_size(p->preload); i++)
		fprintf(out, " %s", json_string_value(json_array_get(p->preload, i)));
	fprintf(out, "%s\n", json_array_size(p->preload) ? "" : " nothing");
	fprintf(out, "  replaced  after %" PRIu64 " runs or %g s, whichever comes first\n", p->zygote_runs, (double)p->zygote_ms / 1000);
	fputs("  shared    hash seed and addresses, stack canaries among them, by all runs of one warm Python (brig-security(7), Warm runs)\n"
	      "  cold      brig run --cold, brig exec, --private, and runs for which no warm Python can be started\n", out);
}

static void print_setup_steps(enum child_table table, const char *title, FILE *out)
{
	print_heading(title, out);
	for (unsigned i = 0; child_step_name(table, i); i++)
		fprintf(out, "  %-22s %s\n", child_step_name(table, i), child_step_reason(table, i));
}

/* Wraps the names at WIDTH columns. otherwise: the text to print if there is no list. */
static void print_name_list(const json_t *names, const char *title, const char *otherwise, FILE *out)
{
	enum { WIDTH = 110 };
	int at = WIDTH;

	print_heading(title, out);
	if (json_array_size(names) == 0)
		fputs(names ? "  none" : otherwise, out);
	for (size_t i = 0; i < json_array_size(names); i++) {
		const char *name = json_string_value(json_array_get(names, i));

		if (at + (int)strlen(name) + 1 > WIDTH)
			at = fprintf(out, "%s ", i ? "\n" : "");
		at += fprintf(out, " %s", name);
	}
	fputc('\n', out);
}

static void print_net_rules(const char *before, const struct net_rules *rules, FILE *out)
{
	char text[NET_RULE_TEXT_MAX];

	for (uint32_t i = 0; i < rules->n; i++) {
		const struct net_rule *r = &rules->rule[i];

		net_rule_print(r, text);
		fprintf(out, "%s%s%s%s", i ? ", " : before, text, r->methods ? " (some methods)" : r->paths > 1 ? " (some paths)" : "", r->is_private ? " (also at private addresses)" : "");
	}
}

static void print_network_rules(const struct explain *x, FILE *out)
{
	const struct net_policy *p = x->profile.net;

	fputs("\nnetwork  ", out);
	if (!p || (!p->allow.n && !p->ceiling.n))
		fputs(" none", out);
	if (p) {
		print_net_rules(" ", &p->allow, out);
		print_net_rules("; a run may ask for ", &p->ceiling, out);
		print_net_rules("; never ", &p->deny, out);
	}
	for (uint32_t i = 0; p && i < p->secrets; i++)
		fprintf(out, "%s%s for %s", i ? ", " : "; secrets: ", p->secret[i].name, p->secret[i].host);
	fputs(p && p->has_ceiling ? "\n" : "; brig run --net HOST names hosts for a run of your own\n", out);
}

static void print_all_details(const struct explain *x, FILE *out)
{
	print_heading(x->profile.require == REQUIRE_ALL ? "layers (required: every one)"
							: "layers (required: always, and as root; a missing one refuses the run)", out);
	for (unsigned i = 0; i < LAYER_COUNT; i++)
		fprintf(out, "  %-15s %-14s %s\n", layer_name(i), layer_need_words(layer_need(i)), layer_doc(i));
	print_network_rules(x, out);
	print_warm_start(x, out);
	print_heading("files", out);
	mount_plan_print(&x->mounts, out);
	print_heading("environment", out);
	for (size_t i = 0; x->env.entry[i]; i++)
		fprintf(out, "  %s\n", x->env.entry[i]);
	print_name_list(x->profile.modules, "modules that brig check accepts (advice: the jail does not depend on it)",
			"  any", out);
	print_name_list(x->profile.calls, "calls of which brig check warns", "  none", out);
	print_setup_steps(CHILD_CELL, "set-up of the cell, in this order", out);
	print_setup_steps(CHILD_ENTER, "the program's way into the cell, in this order", out);
	print_setup_steps(CHILD_PROGRAM, "set-up of the program, in this order", out);
	print_heading("system calls", out);
	policy_explain(x->policy, out);
}

/* Prints the writable mounts and their sizes. */
static void print_writable_mounts(const struct explain *x, FILE *out)
{
	char size[32];

	fputs("\nwritable ", out);
	for (size_t i = 0; i < x->mounts.n; i++) {
		const struct mount_step *m = &x->mounts.step[i];

		if (m->kind != MOUNT_TMPFS)
			continue;
		field_print_value(&(struct field){ .type = FIELD_SIZE }, m->bytes, size, sizeof size);
		fprintf(out, " /%s %s", m->to, size);
	}
	fputs("; all else is read-only, and nothing outlives the run\n", out);
}

static void print_layers_that_need(enum layer_need need, const char *title, FILE *out)
{
	json_t *names = json_array();

	for (unsigned i = 0; i < LAYER_COUNT; i++)
		if (layer_need(i) == need)
			json_array_append_new(names, json_string(layer_name(i)));
	print_name_list(names, title, "", out);
	json_decref(names);
}

static void print_summary(const struct explain *x, FILE *out)
{
	bool all = x->profile.require == REQUIRE_ALL;

	print_writable_mounts(x, out);
	print_network_rules(x, out);
	print_warm_start(x, out);
	print_layers_that_need(NEED_ALWAYS, "layers of every run", out);
	print_layers_that_need(NEED_ROOT, all ? "required layers that only root and root's service have" : "layers that only root and root's service have", out);
	print_layers_that_need(NEED_WHERE_PRESENT, all ? "required layers that not every kernel has" : "layers that not every kernel has", out);
	fprintf(out, "\nbrig explain --all %s prints what each layer is for, mounts, environment, set-up steps and system calls\n", x->profile.name);
}

static void print_profile_text(const struct explain *x, FILE *out)
{
	fprintf(out, "profile   %s: %s\n", x->profile.name, x->profile.description);
	if (x->place < PROFILES_PRESET) /* not a profile that came with brig */
		fprintf(out, "from      %s/%s.json\n", x->places.profiles[x->place], x->profile.name);
	fprintf(out, "rootfs    %s\npolicy    %s\n", x->profile.rootfs, x->profile.policy);
	print_limits(x, out);
	if (x->all)
		print_all_details(x, out);
	else
		print_summary(x, out);
}

/* --- for programs --- */

static json_t *layers_to_json(void)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < LAYER_COUNT; i++)
		json_array_append_new(list, json_pack("{ssssss}", "name", layer_name(i), "required", layer_need_words(layer_need(i)), "for", layer_doc(i)));
	return list;
}

static json_t *mounts_to_json(const struct mount_plan *plan)
{
	json_t *list = json_array();
	char    flags[64];

	for (size_t i = 0; i < plan->n; i++) {
		const struct mount_step *m = &plan->step[i];
		json_t                  *j = json_pack("{sssoss}", "kind", mount_kind_name(m->kind), "path", json_sprintf("/%s", m->to), "flags",
						       mount_print_flags(m, flags, sizeof flags));

		if (m->kind == MOUNT_TMPFS) {
			json_object_set_new(j, "bytes", json_integer((json_int_t)m->bytes));
			json_object_set_new(j, "inodes", json_integer((json_int_t)m->inodes));
		}
		json_array_append_new(list, j);
	}
	return list;
}

static json_t *policy_to_json(const struct policy *p)
{
	char   *text = NULL;
	size_t  len  = 0;
	FILE   *out  = open_memstream(&text, &len);
	json_t *j;

	if (!out)
		return json_null();
	policy_print(p, out);
	fclose(out);
	j = json_stringn(text, len);
	free(text);
	return j;
}

static json_t *env_to_json(const struct program_env *env)
{
	json_t *list = json_array();

	for (size_t i = 0; env->entry[i]; i++)
		json_array_append_new(list, json_string(env->entry[i]));
	return list;
}

static json_t *warm_to_json(const struct profile *p)
{
	bool is = p->warm != WARM_NEVER;

	return json_pack("{ss so so so so}", "mode", profile_warm_name(p->warm), "preload", !is ? json_null() : p->preload ? json_incref((json_t *)p->preload) : json_array(),
			 "zygote_runs", is ? json_integer((json_int_t)p->zygote_runs) : json_null(), "zygote_ms", is ? json_integer((json_int_t)p->zygote_ms) : json_null(),
			 "shares", is ? json_pack("[ss]", "hash-seed", "addresses") : json_array());
}

static void print_profile_json(const struct explain *x, FILE *out)
{
	json_t *j = json_pack("{ss ss so ss ss so so so so so so so sO? sO? so}", "profile", x->profile.name, "description", x->profile.description,
			      "file", json_sprintf("%s/%s.json", x->places.profiles[x->place], x->profile.name), "rootfs", x->profile.rootfs, "policy", x->profile.policy, "limits", limits_to_json(&x->profile.limits),
			      "ceilings", limits_to_json(&x->profile.ceilings), "layers", layers_to_json(), "network", net_policy_to_json(x->profile.net, &x->profile.network), "warm", warm_to_json(&x->profile), "mounts", mounts_to_json(&x->mounts),
			      "environment", env_to_json(&x->env), "modules", x->profile.modules, "calls",
			      x->profile.calls, "system_calls", policy_to_json(x->policy));

	json_dumpf(j, out, JSON_INDENT(2));
	fputc('\n', out);
	json_decref(j);
}

int explain_main(int argc, char **argv)
{
	struct explain x    = { 0 };
	const char    *name = "basic";
	struct err     e;
	int            n = options_parse(options, argc, argv, &x, &e), status = STATUS_OK;

	if (n >= 0 && n + 1 < argc) { /* options may stand on either side of the name */
		int more;

		name = argv[n + 1];
		more = options_parse(options, argc - n - 1, argv + n + 1, &x, &e);
		n    = more < 0 ? more : n + 1 + more;
	}
	if (n >= 0 && n + 1 < argc)
		n = err_set(&e, ERR_BAD_SPEC, "name one profile");
	if (n < 0)
		return command_print_help_or_error(n, argv[0], options, &help, &e);
	if (load_profile_to_explain(&x, name, &e) < 0)
		status = command_print_error(argv[0], &e, STATUS_FAILED);
	else if (x.json)
		print_profile_json(&x, stdout);
	else
		print_profile_text(&x, stdout);
	program_env_done(&x.env);
	policy_bundle_done(&x.bundle);
	profile_done(&x.profile);
	free(x.policy);
	return status;
}
