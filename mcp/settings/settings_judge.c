/* settings_judge.c - settings that are right one by one, and wrong together; and what follows from them. */
#include "choice.h"
#include "inet.h"
#include "text.h"
#include "tool_policy.h"

#include <string.h>

/* "--timeout", "SANDBOX_TIMEOUT in the environment", or of a preset its option. */
static const char *setting_source_name(const struct settings *s, enum setting_id id, char *buf, size_t len)
{
	return s->where[id] ? s->where[id] : setting_spell_name(id, SPELT_OPTION, buf, len);
}

static bool setting_is_set(const struct settings *s, enum setting_id id)
{
	return s->origin[id] != ORIGIN_PRESET;
}

/* If only max_timeout was set, and is the smaller one, timeout is lowered to it. If both were set they contradict each other. */
static int judge_timeout(struct settings *s, struct err *e)
{
	char asked[32], most[32], option[SETTING_NAME_MAX];

	if (s->timeout_ms <= s->max_timeout_ms)
		return 0;
	if (!setting_is_set(s, SETTING_timeout_ms)) {
		s->timeout_ms = s->max_timeout_ms;
		return 0;
	}
	text_from_milli(s->timeout_ms, asked, sizeof asked);
	text_from_milli(s->max_timeout_ms, most, sizeof most);
	return err_set(e, ERR_BAD_SPEC, "%s: %s s is more than a call may ask for, %s s; set --max-timeout to %s or more as well",
		       setting_source_name(s, SETTING_timeout_ms, option, sizeof option), asked, most, asked);
}

static int judge_memory(const struct settings *s, struct err *e)
{
	if (!s->memory_bytes || s->memory_bytes >= 8 * MIB)
		return 0;
	return err_set(e, ERR_BAD_SPEC, "%s: Python needs 8M or more; use 0 for the limit of the profile, or a size like 128m",
		       s->where[SETTING_memory_bytes]);
}

static int judge_allow_missing(const struct settings *s, struct err *e)
{
	for (size_t i = 0; i < json_array_size(s->allow_missing); i++) {
		const char *name = json_string_value(json_array_get(s->allow_missing, i));

		if (strcmp(name, "memory") != 0 && strcmp(name, "cpus") != 0)
			return err_set(e, ERR_BAD_SPEC, "%s: \"%.60s\" is not a limit that can be missing; there are: memory, cpus", s->where[SETTING_allow_missing], name);
	}
	return 0;
}

/* The switches of the published server are profiles here, and a run has one profile. */
static int judge_profile(struct settings *s, struct err *e)
{
	const struct choice_switch *first = choice_find_switch(s);

	for (size_t i = 0; first && i < CHOICE_SWITCHES; i++)
		if (choice_switches[i].id != first->id && choice_switch_is_on(s, &choice_switches[i]))
			return err_set(e, ERR_BAD_SPEC, "%.120s: %.120s is switched on as well, and a run has one profile; use --profile NAME",
				       s->where[choice_switches[i].id], s->where[first->id]);
	if (first)
		s->profile = first->profile;
	return 0;
}

static bool is_module_name(const char *name)
{
	for (bool begins = true; *name; name++) {
		bool letter = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') || *name == '_' || (*name & 0x80);
		bool digit  = *name >= '0' && *name <= '9';

		if (!letter && !(digit && !begins) && !(*name == '.' && !begins && name[1]))
			return false;
		begins = *name == '.';
	}
	return true;
}

/* http://app.example:8080, as a browser writes it */
static bool is_http_origin(const char *text)
{
	const char *host = strstr(text, "://");

	return host && host != text && host[3] && !strpbrk(host + 3, "/?#@ \t") && strcmp(text, "null") != 0;
}

static bool is_host_name(const char *text)
{
	return !strpbrk(text, "/?#@ \t") && strstr(text, "://") == NULL;
}

static int judge_list_entries(const struct settings *s, enum setting_id id, const json_t *list, bool (*is)(const char *), const char *like,
		      struct err *e)
{
	size_t  i;
	json_t *item;

	json_array_foreach(list, i, item)
		if (strlen(json_string_value(item)) > 255 || text_has_control(json_string_value(item)) || !is(json_string_value(item)))
			return err_set(e, ERR_BAD_SPEC, "%s: \"%.80s\" is not %s", s->where[id], json_string_value(item), like);
	return 0;
}

static int judge_lists(const struct settings *s, struct err *e)
{
	static const char tools[] = "a pattern of server.tool, like github.get_* or fs.*";

	if (judge_list_entries(s, SETTING_allowed_imports, s->allowed_imports, is_module_name, "the name of a module, like math or os.path", e) < 0 ||
	    judge_list_entries(s, SETTING_allow_origin, s->allow_origin, is_http_origin, "an origin, like https://app.example:8443", e) < 0 ||
	    judge_list_entries(s, SETTING_allow_host, s->allow_host, is_host_name, "a host name, like python.example or python.example:9015", e) < 0 ||
	    judge_list_entries(s, SETTING_allow_tools, s->allow_tools, tool_pattern_is_valid, tools, e) < 0 ||
	    judge_list_entries(s, SETTING_ask_tools, s->ask_tools, tool_pattern_is_valid, tools, e) < 0)
		return -1;
	return judge_list_entries(s, SETTING_deny_tools, s->deny_tools, tool_pattern_is_valid, tools, e);
}

static int judge_host(struct settings *s, struct err *e)
{
	struct sockaddr_storage address;
	socklen_t               len;
	char                    option[SETTING_NAME_MAX];

	if (strcmp(s->host, "localhost") == 0)
		s->host = "127.0.0.1";
	if (inet_parse_address(s->host, 0, &address, &len))
		return 0;
	return err_set(e, ERR_BAD_SPEC, "%s: \"%.80s\" is not an address; use one like 127.0.0.1, ::1 or 0.0.0.0",
		       setting_source_name(s, SETTING_host, option, sizeof option), s->host);
}

#define TOKEN_HOW "make one: (umask 077; openssl rand -hex 32 >FILE)"

static int judge_token(const struct settings *s, struct err *e)
{
	const char *where = s->where[SETTING_token];

	if (!where && s->insecure_loopback)
		return 0;
	if (!where)
		return err_set(e, ERR_DENIED,
			       "HTTP needs a token of at least %d characters: --token-file FILE, or SANDBOX_API_TOKEN in the environment (" TOKEN_HOW
			       "); or --insecure-loopback, to serve every user of this host",
			       SETTINGS_TOKEN_MIN);
	if (s->token_file && strpbrk(s->token, " \t\n")) /* lines of NAME TOKEN, which the server reads when it starts */
		return 0;
	if (!text_is_visible_ascii(s->token))
		return err_set(e, ERR_DENIED, "%s: blanks and control characters cannot be sent as a token; " TOKEN_HOW, where);
	if (strlen(s->token) < SETTINGS_TOKEN_MIN)
		return err_set(e, ERR_DENIED, "%s: the token has %zu characters, at least %d are needed; " TOKEN_HOW, where,
			       strlen(s->token), SETTINGS_TOKEN_MIN);
	return 0;
}

static void add_note_if_set(struct settings *s, enum setting_id id, const char *text)
{
	if (setting_is_set(s, id))
		json_array_append_new(s->notes, json_sprintf("%s: %s", s->where[id], text));
}

static int judge_http(struct settings *s, struct err *e)
{
	if (!s->http)
		return 0;
	if (judge_host(s, e) < 0)
		return -1;
	if (s->insecure_loopback && !s->where[SETTING_token] && !inet_host_is_loopback(s->host))
		return err_set(e, ERR_BAD_SPEC, "%s: %s can be reached from elsewhere, which needs a token; use --host 127.0.0.1 or --token-file FILE",
			       s->where[SETTING_insecure_loopback], s->host);
	if (!inet_host_is_loopback(s->host) && !json_array_size(s->allow_host))
		add_note_if_set(s, SETTING_host, "requests for another host name than localhost or this address are refused; --allow-host NAME allows one");
	return judge_token(s, e);
}

/* Restricted imports cannot be enforced in a session: modules that an earlier call has imported stay. */
static int judge_sessions(struct settings *s, struct err *e)
{
	enum setting_id bound = setting_is_set(s, SETTING_allowed_imports) ? SETTING_allowed_imports : SETTING_imports;
	char            option[SETTING_NAME_MAX];

	if (s->imports != IMPORTS_ENFORCE && !json_array_size(s->allowed_imports))
		return 0;
	if (setting_is_set(s, SETTING_sessions) && s->sessions)
		return err_set(e, ERR_BAD_SPEC, "%s: cannot be enforced in sessions; set --sessions 0 as well", setting_source_name(s, bound, option, sizeof option));
	s->sessions = 0;
	return 0;
}

/* Clients of HTTP are on other hosts, and have no session of their own in which an answer would end. */
static int judge_stdio_only(const struct settings *s, struct err *e)
{
	const struct {
		bool            is_on;
		enum setting_id id;
		const char     *why;
	} rows[] = {
		{ *s->artifacts, SETTING_artifacts, ", whose client is on this host" },
		{ s->roots, SETTING_roots,
		  ": the folders of a client of HTTP are those of its own host; name folders of this one with --ro" },
		{ s->ask_hosts, SETTING_ask_hosts, ", which has one client; name hosts with --net" },
	};

	for (size_t i = 0; s->http && i < ARRAY_LEN(rows); i++)
		if (rows[i].is_on)
			return err_set(e, ERR_BAD_SPEC, "%s: is for a server on stdio%s", s->where[rows[i].id], rows[i].why);
	return 0;
}

int settings_judge(struct settings *s, struct err *e)
{
	if (judge_timeout(s, e) < 0 || judge_memory(s, e) < 0 || judge_allow_missing(s, e) < 0 || judge_profile(s, e) < 0 || judge_lists(s, e) < 0 ||
	    judge_sessions(s, e) < 0 || judge_stdio_only(s, e) < 0)
		return -1;
	add_note_if_set(s, SETTING_container_mode, "every run is jailed, whatever the value");
	add_note_if_set(s, SETTING_container_image, "the profile names what a jail is made of; this is not used");
	return judge_http(s, e);
}
