#include "tool_texts.h"

#include "choice.h"
#include "instructions.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOSTS_NAMED = 6, HOST_SHOWN = 60, PACKAGES_SHOWN = 90 };

/* --- hosts --- */

static json_t *allowed_hosts_of_profile(const struct settings *s, const json_t *profile)
{
	const json_t *rules =
		json_array_size(s->net) ? s->net : json_object_get(json_object_get(profile, "network"), "allow");
	json_t       *hosts = json_array();

	for (size_t i = 0; i < json_array_size(rules); i++) {
		const json_t *rule = json_array_get(rules, i); /* a text, or an object with a host */
		const char   *host = json_string_value(json_is_object(rule) ? json_object_get(rule, "host") : rule);

		if (host && text_is_plain(host))
			json_array_append_new(hosts, json_string(host));
	}
	return hosts;
}

static void print_reachable_hosts(FILE *out, const struct tool_texts *w)
{
	size_t n = json_array_size(w->hosts);

	if (!n)
		fputs("with no network", out);
	for (size_t i = 0; i < n && i < HOSTS_NAMED; i++)
		fprintf(out, "%s%.*s", i ? ", " : "whose network reaches only ", HOST_SHOWN,
			json_string_value(json_array_get(w->hosts, i)));
	if (n > HOSTS_NAMED)
		fprintf(out, " and %zu more", n - HOSTS_NAMED);
}

/* --- the rest --- */

static void print_shared_folders(FILE *out, const struct tool_texts *w)
{
	for (size_t i = 0; i < json_array_size(w->shown); i++)
		fprintf(out, "%s/workspace/%s", i ? ", " : " Files of the host are in ",
			json_string_value(json_array_get(w->shown, i)));
	if (json_array_size(w->shown))
		fputs(", read-only.", out);
	if (w->has_roots)
		fputs(" Folders of the client are in /workspace, read-only.", out);
}

static void print_profile_packages(FILE *out, const struct tool_texts *w)
{
	const char *text = json_string_value(json_object_get(w->profile, "description"));

	if (text && text_is_plain(text) && strcmp(w->name, "basic") != 0)
		fprintf(out, " It has %.*s.", instructions_brief_length(text), text);
}

void tool_texts_init(const struct mcp *m, struct tool_texts *ret)
{
	const struct settings *s = m->settings;
	uint64_t               wall_ms, ms = s->timeout_ms;

	*ret = (struct tool_texts){ .name = choice_default_profile(s), .shown = m->shown.names, .has_roots = s->roots };
	ret->profile = instructions_load_profile(ret->name);
	ret->hosts   = allowed_hosts_of_profile(s, ret->profile);
	/* a timeout that was set counts, else that of the profile (run_request_default_wall_ms()) */
	wall_ms = (uint64_t)json_integer_value(json_object_get(json_object_get(ret->profile, "limits"), "wall_ms"));
	if (s->origin[SETTING_timeout_ms] == ORIGIN_PRESET && wall_ms > 0 && wall_ms <= INT64_MAX)
		ms = wall_ms;
	text_from_milli(ms < s->max_timeout_ms ? ms : s->max_timeout_ms, ret->timeout, sizeof ret->timeout);
	text_from_milli(s->max_timeout_ms, ret->most, sizeof ret->most);
}

void tool_texts_done(struct tool_texts *w)
{
	json_decref(w->profile);
	json_decref(w->hosts);
	*w = (struct tool_texts){ 0 };
}

bool tool_texts_have_network(const struct tool_texts *w)
{
	return json_array_size(w->hosts) > 0;
}

/* --- filling in --- */

/* Prints the variable that begins here, "{profile}", and returns its length; 0: there is no variable here. */
static size_t expand_variable(FILE *out, const struct tool_texts *w, const char *text)
{
	const struct {
		const char *name, *text;
		void      (*print)(FILE *out, const struct tool_texts *w); /* else text */
	} variables[] = {
		{ "{network}", NULL, print_reachable_hosts },
		{ "{timeout}", w->timeout, NULL },
		{ "{most}", w->most, NULL },
		{ "{profile}", w->name, NULL },
		{ "{packages}", NULL, print_profile_packages },
		{ "{shown}", NULL, print_shared_folders },
	};

	for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
		size_t n = strlen(variables[i].name);

		if (strncmp(text, variables[i].name, n) != 0)
			continue;
		if (variables[i].print)
			variables[i].print(out, w);
		else
			fputs(variables[i].text, out);
		return n;
	}
	return 0;
}

char *tool_texts_expand(const struct tool_texts *w, const char *text)
{
	char  *made = NULL;
	size_t len, n;
	FILE  *out = open_memstream(&made, &len);

	if (!out)
		return NULL;
	for (; *text; text += n ? n : 1)
		if (!(n = expand_variable(out, w, text)))
			putc(*text, out);
	fclose(out);
	return made;
}
