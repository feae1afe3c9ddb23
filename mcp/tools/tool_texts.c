#include "tool_texts.h"

#include "choice.h"
#include "instructions.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOSTS_NAMED = 6, HOST_SHOWN = 60, PACKAGES_SHOWN = 90 };

/* --- hosts --- */

/* A rule is a text, or an object with a host. */
static const char *host_of(const json_t *rule)
{
	return json_string_value(json_is_object(rule) ? json_object_get(rule, "host") : rule);
}

static json_t *hosts_of(const struct settings *s, const json_t *profile)
{
	const json_t *rules = json_array_size(s->net) ? s->net : json_object_get(json_object_get(profile, "network"), "allow");
	json_t       *hosts = json_array();

	for (size_t i = 0; i < json_array_size(rules); i++) {
		const char *host = host_of(json_array_get(rules, i));

		if (host && text_is_plain(host))
			json_array_append_new(hosts, json_string(host));
	}
	return hosts;
}

static void print_network(FILE *out, const struct words *w)
{
	size_t n = json_array_size(w->hosts);

	if (!n)
		fputs("with no network", out);
	for (size_t i = 0; i < n && i < HOSTS_NAMED; i++)
		fprintf(out, "%s%.*s", i ? ", " : "whose network reaches only ", HOST_SHOWN, json_string_value(json_array_get(w->hosts, i)));
	if (n > HOSTS_NAMED)
		fprintf(out, " and %zu more", n - HOSTS_NAMED);
}

static void print_shown(FILE *out, const struct words *w)
{
	for (size_t i = 0; i < json_array_size(w->shown); i++)
		fprintf(out, "%s/workspace/%s", i ? ", " : " Files of the host are in ", json_string_value(json_array_get(w->shown, i)));
	if (json_array_size(w->shown))
		fputs(", read-only.", out);
	if (w->has_roots)
		fputs(" Folders of the client are in /workspace, read-only.", out);
}

/* --- the rest --- */

/* A timeout that was set counts, else that of the profile (run_request_preset_wall()). */
static uint64_t timeout_of(const struct settings *s, const json_t *profile)
{
	const json_t *own = json_object_get(json_object_get(profile, "limits"), "wall_ms");
	uint64_t      ms  = s->origin[SETTING_timeout_ms] == ORIGIN_PRESET && json_is_integer(own) && json_integer_value(own) > 0 ? (uint64_t)json_integer_value(own) : s->timeout_ms;

	return ms < s->max_timeout_ms ? ms : s->max_timeout_ms;
}

static void print_packages(FILE *out, const struct words *w)
{
	const char *text = json_string_value(json_object_get(w->profile, "description"));

	if (text && text_is_plain(text) && strcmp(w->name, "basic") != 0)
		fprintf(out, " It has %.*s.", instructions_brief(text), text);
}

static void print_timeout(FILE *out, const struct words *w)
{
	fputs(w->timeout, out);
}

static void print_most(FILE *out, const struct words *w)
{
	fputs(w->most, out);
}

static void print_profile(FILE *out, const struct words *w)
{
	fputs(w->name, out);
}

void words_of(const struct mcp *m, struct words *ret)
{
	const struct settings *s = m->settings;

	*ret         = (struct words){ .name = choice_profile(s), .shown = m->shown.names, .has_roots = s->roots };
	ret->profile = instructions_profile(ret->name);
	ret->hosts   = hosts_of(s, ret->profile);
	text_from_milli(timeout_of(s, ret->profile), ret->timeout, sizeof ret->timeout);
	text_from_milli(s->max_timeout_ms, ret->most, sizeof ret->most);
}

void words_done(struct words *w)
{
	json_decref(w->profile);
	json_decref(w->hosts);
	*w = (struct words){ 0 };
}

bool words_have_network(const struct words *w)
{
	return json_array_size(w->hosts) > 0;
}

/* --- filling in --- */

static const struct place {
	const char *name;
	void      (*print)(FILE *out, const struct words *w);
} places[] = {
	{ "{network}", print_network }, { "{timeout}", print_timeout }, { "{most}", print_most }, { "{profile}", print_profile }, { "{packages}", print_packages }, { "{shown}", print_shown },
};

static const struct place *place_at(const char *text)
{
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (strncmp(text, places[i].name, strlen(places[i].name)) == 0)
			return &places[i];
	return NULL;
}

char *words_fill(const struct words *w, const char *text)
{
	char  *made = NULL;
	size_t len;
	FILE  *out = open_memstream(&made, &len);

	if (!out)
		return NULL;
	while (*text) {
		const struct place *found = place_at(text);

		if (found)
			found->print(out, w);
		else
			putc(*text, out);
		text += found ? strlen(found->name) : 1;
	}
	fclose(out);
	return made;
}
