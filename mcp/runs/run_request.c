#include "run_request.h"

#include "profile_info.h"
#include "choice.h"
#include "text.h"

#include <string.h>

enum { CHECK_WALL_MS = 10 * 1000, OPEN_WAIT_MS = 60 * 1000 };

int run_request_check_code(const struct settings *s, const json_t *code, struct err *e)
{
	const char *text = json_string_value(code);
	size_t      n    = 0;

	if (!text || !text[strspn(text, " \t\r\n\f\v")])
		return err_set(e, ERR_BAD_SPEC, "Empty code provided");
	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80; /* a character of UTF-8 begins */
	if (n <= s->code_chars)
		return 0;
	if (s->code_chars % 1000)
		return err_set(e, ERR_BAD_SPEC, "Code too large (max %llu characters)",
			       (unsigned long long)s->code_chars);
	return err_set(e, ERR_BAD_SPEC, "Code too large (max %lluKB)", (unsigned long long)(s->code_chars / 1000));
}

/* --- limits --- */

static uint64_t smaller_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t run_request_max_wall_ms(const struct settings *s, const json_t *explained)
{
	return smaller_of(s->max_timeout_ms, profile_info_limit(explained, "ceilings", "wall_ms"));
}

/*
 * A timeout that was set in the settings counts, their preset does not: the profile's limit comes before it, as it
 * fits the profile's use.
 */
uint64_t run_request_default_wall_ms(const struct settings *s, const json_t *explained)
{
	uint64_t own = s->origin[SETTING_timeout_ms] == ORIGIN_PRESET
			       ? profile_info_limit(explained, "limits", "wall_ms")
			       : s->timeout_ms;

	return smaller_of(own, run_request_max_wall_ms(s, explained));
}

uint64_t run_request_default_memory(const struct settings *s, const json_t *explained)
{
	return s->memory_bytes ? smaller_of(s->memory_bytes, profile_info_limit(explained, "ceilings", "memory_bytes"))
			       : profile_info_limit(explained, "limits", "memory_bytes");
}

uint64_t run_request_output_bytes(const struct settings *s, const json_t *explained)
{
	if (s->origin[SETTING_output_bytes] == ORIGIN_PRESET)
		return profile_info_limit(explained, "limits", "output_bytes");
	return smaller_of(s->output_bytes, profile_info_limit(explained, "ceilings", "output_bytes"));
}

/* What is asked for beyond the maximum becomes the maximum, and a warning. */
static uint64_t parse_wall(const struct settings *s, const json_t *asked, const json_t *explained, json_t *warnings)
{
	uint64_t most = run_request_max_wall_ms(s, explained), ms = (uint64_t)(json_number_value(asked) * 1000 + 0.5);
	char     is[32], may[32];

	if (!json_is_number(asked))
		ms = run_request_default_wall_ms(s, explained);
	if (ms <= most)
		return ms;
	json_array_append_new(warnings,
			      json_sprintf("timeout: %s is too long; the call has the maximum, %s seconds",
					   text_from_milli(ms, is, sizeof is), text_from_milli(most, may, sizeof may)));
	return most;
}

static uint64_t parse_memory(const struct settings *s, const json_t *asked, const json_t *explained, json_t *warnings)
{
	uint64_t most = profile_info_limit(explained, "ceilings", "memory_bytes"), bytes;
	char     is[32], may[32];

	bytes = json_is_integer(asked) ? (uint64_t)json_integer_value(asked) : run_request_default_memory(s, explained);
	if (bytes <= most)
		return bytes;
	json_array_append_new(warnings, json_sprintf("memory_limit: %s is too much; it has the maximum, %s",
						     text_from_size(bytes, is, sizeof is),
						     text_from_size(most, may, sizeof may)));
	return most;
}

/* A program that gets more wall time gets as much CPU time. */
static json_t *make_limits(uint64_t wall_ms, uint64_t memory_bytes, uint64_t output_bytes, const json_t *explained)
{
	uint64_t cpu_ms = profile_info_limit(explained, "limits", "cpu_ms");

	if (wall_ms > cpu_ms)
		cpu_ms = smaller_of(wall_ms, profile_info_limit(explained, "ceilings", "cpu_ms"));
	return json_pack("{sI sI sI sI}", "wall_ms", (json_int_t)wall_ms, "cpu_ms", (json_int_t)cpu_ms, "memory_bytes",
			 (json_int_t)memory_bytes, "output_bytes", (json_int_t)output_bytes);
}

/* --- the rest --- */

/* brigd gets NAME=VALUE, so a '=' in the name would set another variable. It finds other errors in a name itself. */
static int check_variables(const json_t *map, struct err *e)
{
	const char   *key;
	const json_t *value;

	json_object_foreach((json_t *)map, key, value)
		if (strchr(key, '='))
			return err_set(e, ERR_BAD_SPEC, "env: \"%.60s\" has a '='; write {\"NAME\": \"value\"}", key);
	return 0;
}

static json_t *env_object_to_list(const json_t *map)
{
	json_t     *list = json_array(), *value;
	const char *key;

	json_object_foreach((json_t *)map, key, value)
		json_array_append_new(list, json_sprintf("%s=%s", key, json_string_value(value)));
	return list;
}

static json_t *make_run_message(const char *mode, const json_t *explained, json_t *imports)
{
	json_t *message =
		json_pack("{ss ss sO}", "op", "run", "mode", mode, "profile", json_object_get(explained, "profile"));

	if (imports)
		json_object_set_new(message, "imports", imports);
	return message;
}

static void put_program_input(json_t *message, const json_t *arguments)
{
	const json_t *args = json_object_get(arguments, "args"), *env = json_object_get(arguments, "env");

	if (json_array_size(args))
		json_object_set(message, "args", (json_t *)args);
	if (json_object_size(env))
		json_object_set_new(message, "env", env_object_to_list(env));
	if (json_is_string(json_object_get(arguments, "stdin")))
		json_object_set_new(message, "stdin", json_true());
}

static bool put_flag(const json_t *arguments, const char *name, bool preset)
{
	const json_t *value = json_object_get(arguments, name);

	return json_is_boolean(value) ? json_is_true(value) : preset;
}

/* Raises the time that tool calls may take by that of a person's answer. */
static void put_tools(json_t *message, const struct settings *s, const json_t *explained)
{
	uint64_t own  = profile_info_limit(explained, "limits", "tool_wait_ms"),
		 most = profile_info_limit(explained, "ceilings", "tool_wait_ms");

	json_object_set_new(message, "tools", json_true());
	if (most > own)
		json_object_set_new(json_object_get(message, "limits"), "tool_wait_ms",
				    json_integer((json_int_t)smaller_of(own + s->ask_timeout_ms, most)));
}

static void fill_answer_form(const struct settings *s, const json_t *arguments, struct answer_form *answer_form)
{
	const char *format = json_string_value(json_object_get(arguments, "format"));

	answer_form->as_text = format ? strcmp(format, "text") == 0 : s->reply == REPLY_TEXT;
	answer_form->detail  = put_flag(arguments, "detail", s->detail);
	answer_form->echo    = put_flag(arguments, "echo_result", s->echo_result);
	answer_form->capture = put_flag(arguments, "capture_output", true);
}

/*
 * Limits of the jail, not of a call. A limit in the message must be enforced, or brigd refuses it; so memory is left
 * out if neither the call nor the settings ask for it.
 */
static void put_jail(json_t *message, const struct settings *s, const json_t *asked)
{
	if (!json_is_integer(json_object_get(asked, "memory_limit")) && !s->memory_bytes)
		json_object_del(json_object_get(message, "limits"), "memory_bytes");
	if (json_array_size(s->allow_missing))
		json_object_set(message, "allow_missing", s->allow_missing);
	if (json_array_size(s->net))
		json_object_set(message, "network", s->net);
}

/*
 * A file .env may pick the profiles that come with brig, which reach no host. Where a host has one of that name with
 * hosts or secrets, a person chooses it: who wrote the file would otherwise have programs reach these hosts with
 * these secrets.
 */
static int check_profile(const struct settings *s, const json_t *explained, struct err *e)
{
	const json_t               *network = json_object_get(explained, "network");
	const char                 *profile = json_string_value(json_object_get(explained, "profile"));
	const struct choice_switch *by      = choice_find_switch(s);

	if (!by || s->origin[by->id] != ORIGIN_DOTENV || !profile || strcmp(profile, by->profile) != 0)
		return 0;
	if (!json_array_size(json_object_get(network, "allow")) &&
	    !json_object_size(json_object_get(network, "secrets")))
		return 0;
	return err_set(e, ERR_DENIED,
		       "%s: the profile %s has hosts or secrets of its own, and such a file does not choose it; start "
		       "brig-mcp with --profile %s",
		       s->where[by->id], profile, profile);
}

int run_request_make_run(const struct settings *s, const json_t *arguments, const json_t *explained, json_t *warnings,
		    json_t **message, struct answer_form *answer_form, struct err *e)
{
	const json_t *modules = json_object_get(explained, "modules"),
		     *asked   = json_object_get(arguments, "allowed_imports");

	fill_answer_form(s, arguments, answer_form);
	if (check_profile(s, explained, e) < 0 || check_variables(json_object_get(arguments, "env"), e) < 0)
		return -1;
	answer_form->timeout_ms   = parse_wall(s, json_object_get(arguments, "timeout"), explained, warnings);
	answer_form->memory_bytes = parse_memory(s, json_object_get(arguments, "memory_limit"), explained, warnings);
	*message = make_run_message("report", explained, choice_allowed_imports(s, modules, asked));
	json_object_set_new(*message, "limits",
			    make_limits(answer_form->timeout_ms, answer_form->memory_bytes,
				      run_request_output_bytes(s, explained), explained));
	put_jail(*message, s, arguments);
	if (*s->servers)
		put_tools(*message, s, explained);
	put_program_input(*message, arguments);
	return 0;
}

/* --- in a session --- */

int run_request_make_call(const struct settings *s, const json_t *arguments, const json_t *explained, json_t *warnings,
		     json_t **message, struct answer_form *answer_form, struct err *e)
{
	fill_answer_form(s, arguments, answer_form);
	if (json_string_length(json_object_get(arguments, "stdin")))
		return err_set(e, ERR_BAD_SPEC,
			       "stdin: a call in a session has none; put the text into a file, with the argument "
			       "files, and open it");
	if (json_array_size(json_object_get(arguments, "args")))
		return err_set(e, ERR_BAD_SPEC, "args: a call in a session has none; write the values into the code");
	if (json_array_size(json_object_get(arguments, "allowed_imports")))
		return err_set(e, ERR_BAD_SPEC,
			       "allowed_imports: cannot be enforced in a session; leave it out, or session");
	answer_form->timeout_ms = parse_wall(s, json_object_get(arguments, "timeout"), explained, warnings);
	*message = json_pack("{ss}", "op", "run");
	json_object_set_new(*message, "limits",
			    make_limits(answer_form->timeout_ms, 0, run_request_output_bytes(s, explained), explained));
	json_object_del(json_object_get(*message, "limits"), "memory_bytes");
	if (*s->servers)
		put_tools(*message, s, explained);
	return 0;
}

json_t *run_request_make_open(const struct settings *s, const json_t *asked, const json_t *explained, json_t *warnings,
			 struct err *e)
{
	uint64_t memory_bytes;
	json_t  *message;

	if (check_profile(s, explained, e) < 0 || check_variables(json_object_get(asked, "env"), e) < 0)
		return NULL;
	memory_bytes = parse_memory(s, json_object_get(asked, "memory_limit"), explained, warnings);
	message      = json_pack("{ss sO s{sI} sI}", "op", "open", "profile", json_object_get(explained, "profile"),
				 "limits", "memory_bytes", (json_int_t)memory_bytes, "wait_ms",
				 (json_int_t)OPEN_WAIT_MS);
	put_jail(message, s, asked);
	if (json_object_size(json_object_get(asked, "env")))
		json_object_set_new(message, "env", env_object_to_list(json_object_get(asked, "env")));
	return message;
}

json_t *run_request_make_check(const struct settings *s, const json_t *asked_imports, const json_t *explained)
{
	json_t *message = make_run_message(
		"check", explained, choice_allowed_imports(s, json_object_get(explained, "modules"), asked_imports));

	json_object_set_new(
		message, "limits",
		json_pack("{sI}", "wall_ms",
			  (json_int_t)smaller_of(CHECK_WALL_MS, profile_info_limit(explained, "ceilings", "wall_ms"))));
	return message;
}
