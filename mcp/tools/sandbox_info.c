#include "sandbox_info.h"

#include "execution.h"
#include "member.h"
#include "profile_info.h"
#include "run_request.h"
#include "choice.h"
#include "tool.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

/* The profiles for the tiers of the published server. */
static const char *const tiers[] = { "basic", "data-science", "network", "filesystem" };

struct work {
	struct call      *call;
	const struct sandbox_info_reader *reader;
	void                *owner;
	struct profile_question          fact;
	json_t              *hello, *names; /* names: of profiles that are still to be asked about */
	char                 asked[64];
	struct sandbox_info  info;
	struct execution    *probe;
	struct waiter        probed;
};

/* The call may have been answered, and be gone. */
static void sandbox_info_work_free(struct work *w)
{
	profile_info_detach(&w->fact);
	if (w->probe)
		execution_remove_waiter(w->probe, &w->probed);
	json_decref(w->hello);
	json_decref(w->names);
	json_decref(w->info.profiles);
	json_decref(w->info.isolation);
	json_decref(w->info.why);
	free(w);
}

static void sandbox_info_cancel_and_free(struct call *c)
{
	struct work *w = c->work;

	if (w->reader->gone)
		w->reader->gone(w->owner);
	sandbox_info_work_free(w);
}

/* Answers the call with what is known while it is there; why: it is not known. */
static void sandbox_info_deliver_and_free(struct work *w, const struct err *why)
{
	struct call                      *c      = w->call;
	const struct sandbox_info_reader *reader = w->reader;
	void                             *owner  = w->owner;

	c->cancel = NULL;
	if (!why)
		reader->known(c, &w->info, NULL, owner);
	sandbox_info_work_free(w);
	if (why)
		reader->known(c, NULL, why, owner);
}

/* --- which layers are in force --- */

static void on_isolation_probe_ended(void *owner, struct execution *x)
{
	struct work  *w         = owner;
	const json_t *isolation = json_object_get(x->record, "isolation"), *error = json_object_get(x->record, "error");
	const char   *message   = x->record ? json_string_value(json_object_get(error, "message")) : x->failure.text;

	if (json_array_size(isolation))
		json_array_extend(w->info.isolation, (json_t *)isolation);
	else
		w->info.why = json_string(message ? message : "no program could be run");
	profile_info_set_isolation(w->call->mcp->brigd_link, x->profile, isolation);
	sandbox_info_deliver_and_free(w, NULL);
}

static void run_isolation_probe(struct work *w)
{
	struct err e;
	const struct execution_request request = {
		.message   = json_pack("{ss ss ss}", "op", "run", "mode", "script", "profile", w->info.preset),
		.code      = "pass\n",
		.code_len  = 5,
		.principal = w->call->channel->principal,
	};

	w->probe = execution_start(w->call->mcp, &request, &e);
	if (!w->probe) {
		sandbox_info_deliver_and_free(w, &e);
		return;
	}
	w->probed = (struct waiter){ .ended = on_isolation_probe_ended, .owner = w };
	execution_add_waiter(w->probe, &w->probed);
}

static void find_isolation_layers(struct work *w)
{
	const json_t *known = profile_info_isolation(w->call->mcp->brigd_link, w->info.preset);

	if (!known && sandbox_info_profile(&w->info, w->info.preset)) {
		run_isolation_probe(w);
		return;
	}
	if (known)
		json_array_extend(w->info.isolation, (json_t *)known);
	else
		w->info.why = json_incref(json_object_get(json_object_get(w->info.profiles, w->info.preset), "error"));
	sandbox_info_deliver_and_free(w, NULL);
}

/* --- the profiles, one after the other --- */

static void ask_about_next_profile(struct work *w);

static void on_profile_explained(void *owner, const json_t *reply, const struct err *why)
{
	struct work *w = owner;

	if (!reply && why->kind != ERR_BAD_SPEC) {
		sandbox_info_deliver_and_free(w, why);
		return;
	}
	json_object_set_new(w->info.profiles, w->asked,
			    reply ? json_incref((json_t *)reply) : json_pack("{ss}", "error", why->text));
	ask_about_next_profile(w);
}

static void ask_about_next_profile(struct work *w)
{
	size_t n = json_array_size(w->names);

	if (!n && w->reader->isolation)
		find_isolation_layers(w);
	else if (!n)
		sandbox_info_deliver_and_free(w, NULL);
	if (!n)
		return;
	snprintf(w->asked, sizeof w->asked, "%s", json_string_value(json_array_get(w->names, n - 1)));
	json_array_remove(w->names, n - 1);
	w->fact = (struct profile_question){ .known = on_profile_explained, .owner = w };
	profile_info_ask(&w->fact, w->call->mcp->brigd_link, "explain", w->asked);
}

static void add_name_once(json_t *names, const char *name)
{
	if (!sandbox_info_list_has(names, name))
		json_array_append_new(names, json_string(name));
}

static void on_hello_reply(void *owner, const json_t *reply, const struct err *why)
{
	struct work  *w    = owner;
	const json_t *more = json_object_get(reply, "profiles");

	if (!reply) {
		sandbox_info_deliver_and_free(w, why);
		return;
	}
	w->info.hello = w->hello = json_incref((json_t *)reply);
	for (size_t i = json_array_size(more); i--;)
		add_name_once(w->names, member_text(json_array_get(more, i), "name"));
	for (size_t i = ARRAY_LEN(tiers); i--;)
		add_name_once(w->names, tiers[i]);
	add_name_once(w->names, w->info.preset);
	ask_about_next_profile(w);
}

void sandbox_info_gather(struct call *c, const struct sandbox_info_reader *reader, void *owner)
{
	struct work *w = calloc(1, sizeof *w);
	struct err   e;

	if (!w) {
		err_set(&e, ERR_LIMIT, "out of memory");
		reader->known(c, NULL, &e, owner);
		return;
	}
	*w = (struct work){ .call = c, .reader = reader, .owner = owner, .names = json_array() };
	w->info   = (struct sandbox_info){ .profiles  = json_object(),
					   .isolation = json_array(),
					   .preset    = choice_default_profile(c->mcp->settings) };
	w->fact   = (struct profile_question){ .known = on_hello_reply, .owner = w };
	c->work   = w;
	c->cancel = sandbox_info_cancel_and_free;
	profile_info_ask(&w->fact, c->mcp->brigd_link, "hello", NULL);
}

void sandbox_info_answer(struct call *c, json_t *(*make)(const struct mcp *m, const struct sandbox_info *s),
			 const struct sandbox_info *s, const struct err *why)
{
	if (s)
		tool_answer_data(c, make(c->mcp, s), false);
	else
		tool_answer_text(c, why->text, true);
}

/* A rootfs that is built has a manifest with packages. */
const json_t *sandbox_info_profile(const struct sandbox_info *s, const char *name)
{
	const json_t *found = json_object_get(s->profiles, name);

	return json_array_size(json_object_get(found, "packages")) ? found : NULL;
}

const json_t *sandbox_info_modules(const struct sandbox_info *s, const char *name)
{
	return json_object_get(sandbox_info_profile(s, name), "modules");
}

bool sandbox_info_list_has(const json_t *list, const char *text)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (strcmp(json_string_value(json_array_get(list, i)), text) == 0)
			return true;
	return false;
}

json_t *sandbox_info_modules_beyond_basic(const struct sandbox_info *s, const char *name)
{
	const json_t *all = sandbox_info_modules(s, name), *basic = sandbox_info_modules(s, "basic");
	json_t       *list = json_array();

	for (size_t i = 0; i < json_array_size(all); i++)
		if (!sandbox_info_list_has(basic, json_string_value(json_array_get(all, i))))
			json_array_append(list, json_array_get(all, i));
	return list;
}

/* --- packages: a distribution's names and versions become those of their authors --- */

/* Parts of the standard library that Debian has in packages of their own. */
static const char *const parts[] = { "minimal", "distutils", "lib2to3", "gdbm", "tk", "venv", "pkg-resources" };

static const char *python_name_of_package(const char *package)
{
	if (strcmp(package, "python3") == 0)
		return "python";
	if (!begins_with(package, "python3-") || strstr(package, "-lib") || strstr(package, "-dev"))
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (strcmp(package + 8, parts[i]) == 0)
			return NULL;
	return package + 8;
}

json_t *sandbox_info_packages(const struct sandbox_info *s, const char *name)
{
	const json_t *all  = json_object_get(sandbox_info_profile(s, name), "packages");
	json_t       *list = json_array();

	for (size_t i = 0; i < json_array_size(all); i++) {
		const json_t *package = json_array_get(all, i);
		const char   *known   = python_name_of_package(member_text(package, "name")),
			   *version   = member_text(package, "version"), *dash;
		size_t        n, plus;
		json_t       *row;

		if (!known)
			continue;
		/* "1:1.24.2+dfsg-1+deb12u1" -> "1.24.2" */
		version += strchr(version, ':') ? strcspn(version, ":") + 1 : 0;
		dash = strrchr(version, '-');
		n    = dash ? (size_t)(dash - version) : strlen(version);
		plus = strcspn(version, "+~");
		row  = json_pack("{ss ss#}", "name", known, "version", version, (int)(plus < n ? plus : n));
		json_array_insert_new(list, strcmp(known, "python") == 0 ? 0 : json_array_size(list), row);
	}
	return list;
}
