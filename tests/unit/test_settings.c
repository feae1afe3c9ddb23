#include "nearest.h"
#include "settings.h"
#include "tap.h"
#include "text.h"
#include "wire.h"

/* What a person says in one place, and what comes of it: NULL, or how the refusal begins. */
struct row {
	const char *name;
	const char *words; /* of a command line, or NULL */
	const char *env;   /* JSON object of variables, or NULL */
	const char *dotenv;
	const char *file;
	const char *says;
};

/* clang-format off */
static const struct row rows[] = {
	{ "nothing at all is right", NULL, NULL, NULL, NULL, NULL },

	{ "an option takes its value behind a blank", "--timeout 5", NULL, NULL, NULL, NULL },
	{ "an option takes its value behind an equals sign", "--timeout=5", NULL, NULL, NULL, NULL },
	{ "a switch stands alone", "--echo-result --keep-ansi", NULL, NULL, NULL, NULL },
	{ "a switch can be switched off", "--echo-result=false", NULL, NULL, NULL, NULL },
	{ "a word behind a switch is no value of it", "--echo-result false", NULL, NULL, NULL, "\"false\" is not an option" },
	{ "a word that is no option is refused", "serve", NULL, NULL, NULL, "\"serve\" is not an option, and brig-mcp takes no other arguments" },
	{ "an option without a value is refused", "--timeout", NULL, NULL, NULL, "--timeout: needs a value" },
	{ "an unknown option is refused with what may have been meant", "--timout 5", NULL, NULL, NULL, "--timout: no such option; is it --timeout?" },
	{ "swapped letters are understood", "--tiemout 5", NULL, NULL, NULL, "--tiemout: no such option; is it --timeout?" },
	{ "an unknown option that resembles nothing is refused", "--frobnicate", NULL, NULL, NULL, "--frobnicate: no such option; see --help" },
	{ "a misspelt deed is refused with what may have been meant", "--chek", NULL, NULL, NULL, "--chek: no such option; is it --check?" },
	{ "a deed takes no value", "--check=1", NULL, NULL, NULL, "--check takes no value" },
	{ "three dashes are too many", "---timeout 5", NULL, NULL, NULL, "---timeout: no such option; is it --timeout?" },
	{ "a lone dash is no option", "-", NULL, NULL, NULL, "\"-\" is not an option" },
	{ "two dashes end the options", "-- --http", NULL, NULL, NULL, "\"--http\" is not an option" },
	{ "the published way to ask for stdio is accepted", "--transport stdio", NULL, NULL, NULL, NULL },
	{ "the published way to ask for HTTP is accepted", "--transport http --insecure-loopback", NULL, NULL, NULL, NULL },
	{ "another transport is refused", "--transport sse", NULL, NULL, NULL, "--transport: expected stdio or http, not \"sse\"" },

	{ "seconds may have decimals", "--timeout 0.5", NULL, NULL, NULL, NULL },
	{ "a word is no time", "--timeout soon", NULL, NULL, NULL, "--timeout: \"soon\" is not a time, like 30, 0.5, 90s, 5m, 1h or 1d" },
	{ "a negative time is refused", "--timeout -1", NULL, NULL, NULL, "--timeout: \"-1\" is not a time" },
	{ "no time at all is refused", "--timeout 0", NULL, NULL, NULL, "--timeout: 0 is outside 0.01..86400" },
	{ "a size may have a unit in small letters", "--memory 128m", NULL, NULL, NULL, NULL },
	{ "a size that no number can hold is refused", "--memory 99999999999999999999", NULL, NULL, NULL, "--memory: \"99999999999999999999\" is not a size" },
	{ "memory that no interpreter fits in is refused", "--memory 1m", NULL, NULL, NULL, "--memory: Python needs 8M or more" },
	{ "output of no bytes is refused", "--output 0", NULL, NULL, NULL, "--output: 0 is outside 1K..1G" },
	{ "a port beyond the last is refused", "--port 65536", NULL, NULL, NULL, "--port: 65536 is outside 0..65535" },
	{ "a choice that is none is refused with the list", "--reply xml", NULL, NULL, NULL, "--reply: \"xml\" is none of json, text" },
	{ "a profile's name is a name", "--profile ../x", NULL, NULL, NULL, "--profile: \"../x\" is no name" },
	{ "a module's name may be dotted", "--allowed-imports os.path,math", NULL, NULL, NULL, NULL },
	{ "a module's name has no semicolon", "--allowed-imports os;sys", NULL, NULL, NULL, "--allowed-imports: \"os;sys\" is not the name of a module" },
	{ "a module's name ends with no dot", "--allowed-imports os.", NULL, NULL, NULL, "--allowed-imports: \"os.\" is not the name of a module" },
	{ "a module's name begins with no digit", "--allowed-imports os.2", NULL, NULL, NULL, "--allowed-imports: \"os.2\" is not the name" },
	{ "an origin has a scheme", "--allow-origin app.example", NULL, NULL, NULL, "--allow-origin: \"app.example\" is not an origin, like https://" },
	{ "an origin has no path", "--allow-origin https://app.example/", NULL, NULL, NULL, "--allow-origin: \"https://app.example/\" is not an origin" },
	{ "the origin null cannot be let in", "--allow-origin null", NULL, NULL, NULL, "--allow-origin: \"null\" is not an origin" },
	{ "a host name is no URL", "--allow-host http://a.example", NULL, NULL, NULL, "--allow-host: \"http://a.example\" is not a host name" },

	{ "published variables are understood", NULL, "{\"SANDBOX_TIMEOUT\":\"5\",\"SANDBOX_MAX_OUTPUT_SIZE\":\"1048576\",\"SANDBOX_DEFAULT_MEMORY_LIMIT\":\"128m\"}", NULL, NULL, NULL },
	{ "an empty variable says nothing", NULL, "{\"SANDBOX_TIMEOUT\":\"\",\"BRIG_MCP_PORT\":\"\"}", NULL, NULL, NULL },
	{ "a variable's mistake is told with its name", NULL, "{\"SANDBOX_TIMEOUT\":\"abc\"}", NULL, NULL, "SANDBOX_TIMEOUT in the environment: \"abc\" is not a time" },
	{ "a boolean is a word of a list", NULL, "{\"SANDBOX_ENABLE_NETWORK\":\"maybe\"}", NULL, NULL, "SANDBOX_ENABLE_NETWORK in the environment: \"maybe\" is not true or false" },
	{ "an unknown variable of ours is refused with what may have been meant", NULL, "{\"BRIG_MCP_TIMOUT\":\"5\"}", NULL, NULL, "BRIG_MCP_TIMOUT in the environment: no such setting; is it BRIG_MCP_TIMEOUT?" },
	{ "an unknown published variable is not ours to judge", NULL, "{\"SANDBOX_COLOUR\":\"red\"}", NULL, NULL, NULL },
	{ "the configuration's own variable is no setting", NULL, "{\"BRIG_MCP_CONFIG\":\"/x\"}", NULL, NULL, NULL },
	{ "what a stronger one covers may be wrong", "--timeout 5", "{\"SANDBOX_TIMEOUT\":\"abc\"}", NULL, NULL, NULL },

	{ ".env is read", NULL, NULL, "SANDBOX_TIMEOUT=5\n", NULL, NULL },
	{ ".env's mistake is told with its line", NULL, NULL, "# mine\n\nSANDBOX_TIMEOUT = abc # no\n", NULL, ".env, line 3: SANDBOX_TIMEOUT: \"abc\" is not a time" },
	{ "lines of other programs are passed over in any spelling", NULL, NULL, "PATH+=x\n=\n\"\nA='never closed\nexport 7=3\nSANDBOX_TIMEOUT=5\n", NULL, NULL },
	{ "our own line must be whole", NULL, NULL, "SANDBOX_TIMEOUT=\"5\n", NULL, ".env, line 1: SANDBOX_TIMEOUT: the quote \" is never closed" },
	{ "behind a quote nothing may stand", NULL, NULL, "SANDBOX_TIMEOUT='5'0\n", NULL, ".env, line 1: SANDBOX_TIMEOUT: something stands behind the closing quote" },
	{ "our name without a value is refused", NULL, NULL, "SANDBOX_TIMEOUT\n", NULL, ".env, line 1: SANDBOX_TIMEOUT: expected NAME=VALUE" },
	{ "a line inside of quotes is none of ours", NULL, NULL, "TEXT=\"\nSANDBOX_TIMEOUT=abc\n\"\n", NULL, NULL },
	{ "a line behind quotes that span lines is counted right", NULL, NULL, "TEXT=\"\n\n\"\nSANDBOX_TIMEOUT=abc\n", NULL, ".env, line 4: SANDBOX_TIMEOUT" },
	{ ".env executes nothing", NULL, NULL, "SANDBOX_TIMEOUT=$(id)\n", NULL, ".env, line 1: SANDBOX_TIMEOUT: \"$(id)\" is not a time" },
	{ ".env opens no port", NULL, NULL, "BRIG_MCP_HTTP=true\n", NULL, ".env, line 1: BRIG_MCP_HTTP: not allowed in this file" },
	{ ".env lets no browser in", NULL, NULL, "BRIG_MCP_ALLOW_ORIGIN=https://evil.example\n", NULL, ".env, line 1: BRIG_MCP_ALLOW_ORIGIN: not allowed in this file" },
	{ "a name that .env misspells is refused", NULL, NULL, "BRIG_MCP_REPLAY=text\n", NULL, ".env, line 1: BRIG_MCP_REPLAY: no such setting; is it BRIG_MCP_REPLY?" },

	{ "the file takes numbers, sizes, switches and lists", NULL, NULL, NULL, "{\"timeout\":1.5,\"output\":\"64K\",\"memory\":134217728,\"echo_result\":true,\"allowed_imports\":[\"math\"],\"reply\":\"text\"}", NULL },
	{ "the file may have a comment", NULL, NULL, NULL, "{\"comment\":\"mine\"}", NULL },
	{ "an unknown key is refused with its line and what may have been meant", NULL, NULL, NULL, "{\n \"port\": 1,\n \"timout\": 5\n}", "mcp.json, line 3: timout: no such setting; is it timeout?" },
	{ "a key in the spelling of an option is understood as a slip", NULL, NULL, NULL, "{\"max-timeout\":5}", "mcp.json, line 1: max-timeout: no such setting; is it max_timeout?" },
	{ "a key that resembles nothing is refused", NULL, NULL, NULL, "{\"colour\":\"red\"}", "mcp.json, line 1: colour: no such setting; brig-mcp(1) has the list" },
	{ "a value of the wrong kind is refused", NULL, NULL, NULL, "{\"timeout\":[5]}", "mcp.json, line 1: timeout: expected a time, like 30, 0.5, 90s, 5m, 1h or 1d" },
	{ "a boolean is no time", NULL, NULL, NULL, "{\"timeout\":true}", "mcp.json, line 1: timeout: expected a time" },
	{ "half a port is refused", NULL, NULL, NULL, "{\"port\":1.5}", "mcp.json, line 1: port: expected a whole number" },
	{ "an entry with a comma is refused", NULL, NULL, NULL, "{\"allowed_imports\":[\"a,b\"]}", "mcp.json, line 1: allowed_imports: expected a list of texts, none with a comma" },
	{ "a key inside of a list is none of ours", NULL, NULL, NULL, "{\"allow_host\":[\"timeout\"],\n\"timeout\":\"abc\"}", "mcp.json, line 2: timeout: \"abc\"" },
	{ "a file that is no JSON is refused with the line", NULL, NULL, NULL, "{\n", "mcp.json: line 2" },
	{ "a key twice is refused", NULL, NULL, NULL, "{\"port\":1,\"port\":2}", "mcp.json: line 1" },

	{ "a time beyond the most is refused when both were said", "--timeout 600", NULL, NULL, NULL, "--timeout: 600 s is more than a call may ask for, 300 s; set --max-timeout to 600 or more as well" },
	{ "a lower most lowers the usual", "--max-timeout 10", NULL, NULL, NULL, NULL },
	{ "two tiers at once are refused", NULL, "{\"SANDBOX_ENABLE_NETWORK\":\"true\",\"SANDBOX_ENABLE_DATA_SCIENCE\":\"true\"}", NULL, NULL, "SANDBOX_ENABLE_NETWORK in the environment: SANDBOX_ENABLE_DATA_SCIENCE in the environment is switched on as well, and a run has one profile; use --profile NAME" },
	{ "unless a profile is said", "--profile network", "{\"SANDBOX_ENABLE_NETWORK\":\"true\",\"SANDBOX_ENABLE_DATA_SCIENCE\":\"true\"}", NULL, NULL, NULL },
	{ "HTTP without a token is refused", "--http", NULL, NULL, NULL, "HTTP needs a token of at least 32 characters" },
	{ "HTTP with a weak token is refused", "--http", "{\"SANDBOX_API_TOKEN\":\"0123456789012345678901234567890\"}", NULL, NULL, "SANDBOX_API_TOKEN in the environment: the token has 31 characters, at least 32 are needed" },
	{ "a token of 32 characters will do", "--http", "{\"SANDBOX_API_TOKEN\":\"01234567890123456789012345678901\"}", NULL, NULL, NULL },
	{ "a token with a blank cannot be sent", "--http", "{\"SANDBOX_API_TOKEN\":\"0123456789 0123456789012345678901\"}", NULL, NULL, "SANDBOX_API_TOKEN in the environment: blanks and control characters" },
	{ "a weak token bothers nobody on stdio", NULL, "{\"SANDBOX_API_TOKEN\":\"weak\"}", NULL, NULL, NULL },
	{ "without a token only a loopback is served", "--http --insecure-loopback --host 0.0.0.0", NULL, NULL, NULL, "--insecure-loopback: 0.0.0.0 can be reached from elsewhere" },
	{ "the loopback of IPv6 is one", "--http --insecure-loopback --host ::1", NULL, NULL, NULL, NULL },
	{ "so is all of 127", "--http --insecure-loopback --host 127.1.2.3", NULL, NULL, NULL, NULL },
	{ "and localhost", "--http --insecure-loopback --host localhost", NULL, NULL, NULL, NULL },
	{ "a host is an address", "--http --insecure-loopback --host here", NULL, NULL, NULL, "--host: \"here\" is not an address; use one like 127.0.0.1" },
};
/* clang-format on */

static int take_words(struct settings *s, const char *words, struct err *e)
{
	char  copy[512], *argv[16] = { "brig-mcp" };
	int   argc = 1;
	char *save = NULL;

	snprintf(copy, sizeof copy, "%s", words);
	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	return settings_parse_options(s, argc, argv, e);
}

static int take_all(struct settings *s, const struct row *r, struct err *e)
{
	scoped_json *env = r->env ? json_loads(r->env, 0, NULL) : json_object();

	settings_init(s);
	if (r->words && take_words(s, r->words, e) < 0)
		return -1;
	if (settings_set_from_variables(s, ORIGIN_ENVIRONMENT, env, NULL, e) < 0)
		return -1;
	if (r->dotenv && settings_parse_dotenv(s, r->dotenv, strlen(r->dotenv), e) < 0)
		return -1;
	if (r->file && settings_parse_json(s, "mcp.json", r->file, strlen(r->file), e) < 0)
		return -1;
	return settings_judge(s, e);
}

static void check_row(const struct row *r)
{
	scoped_settings s  = { 0 };
	struct err      e  = { 0 };
	bool            no = take_all(&s, r, &e) < 0;

	if (!tap_ok(no ? r->says && strncmp(e.text, r->says, strlen(r->says)) == 0 : !r->says, "%s", r->name))
		printf("#   %s\n", no ? e.text : "accepted");
}

static void check_order(void)
{
	struct row      r = { "", "--timeout 1", "{\"SANDBOX_TIMEOUT\":\"2\",\"SANDBOX_MAX_TIMEOUT\":\"20\"}", "SANDBOX_TIMEOUT=3\nSANDBOX_MAX_TIMEOUT=30\nBRIG_MCP_PROGRESS=3\n",
				"{\"timeout\":4,\"max_timeout\":40,\"progress\":4,\"max_calls\":4}", NULL };
	scoped_settings s = { 0 };
	struct err      e = { 0 };

	tap_ok(take_all(&s, &r, &e) == 0 && s.timeout_ms == 1000 && s.origin[SETTING_timeout_ms] == ORIGIN_OPTION, "an option goes before everything");
	tap_ok(s.max_timeout_ms == 20000 && s.origin[SETTING_max_timeout_ms] == ORIGIN_ENVIRONMENT, "the environment goes before .env");
	tap_ok(s.progress_ms == 3000 && s.origin[SETTING_progress_ms] == ORIGIN_DOTENV, ".env goes before the file");
	tap_ok(s.max_calls == 4 && s.origin[SETTING_max_calls] == ORIGIN_FILE, "the file goes before the preset");
	tap_ok(s.max_connections == 256 && s.origin[SETTING_max_connections] == ORIGIN_PRESET && !s.where[SETTING_max_connections], "what nobody says has its preset");
	tap_is(s.where[SETTING_progress_ms], ".env, line 3: BRIG_MCP_PROGRESS", "where it was said is kept");
	tap_is(s.where[SETTING_max_calls], "mcp.json, line 1: max_calls", "with the line of the file");
}

static void check_names(void)
{
	struct row older = { "", NULL, "{\"SANDBOX_DEFAULT_TIMEOUT\":\"7\",\"SANDBOX_TIMEOUT\":\"8\"}", "BRIG_MCP_TIMEOUT=9\n", NULL, NULL };
	struct row ours  = { "", NULL, "{\"SANDBOX_TIMEOUT\":\"8\",\"BRIG_MCP_TIMEOUT\":\"9\"}", NULL, NULL, NULL };
	struct row empty = { "", NULL, "{\"SANDBOX_TIMEOUT\":\"8\",\"BRIG_MCP_TIMEOUT\":\"\"}", NULL, NULL, NULL };
	struct row last  = { "", "--timeout 5 --timeout 6", NULL, NULL, NULL, NULL };
	struct row twice = { "", NULL, NULL, "SANDBOX_TIMEOUT=5\nSANDBOX_TIMEOUT=6\n", NULL, NULL };
	const struct {
		const struct row *row;
		uint64_t          ms;
		const char       *name;
	} all[] = {
		{ &older, 8000, "of the older names the first of the row counts, and all of them before .env" },
		{ &ours, 9000, "our name goes before an older one" },
		{ &empty, 8000, "but not when it is empty" },
		{ &last, 6000, "of an option said twice the last counts" },
		{ &twice, 6000, "so it is in .env" },
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		scoped_settings s = { 0 };
		struct err      e = { 0 };

		tap_ok(take_all(&s, all[i].row, &e) == 0 && s.timeout_ms == all[i].ms, "%s", all[i].name);
	}
}

static bool is_item(const json_t *list, size_t i, const char *text)
{
	const char *item = json_string_value(json_array_get(list, i));

	return item && strcmp(item, text) == 0;
}

static void check_values(void)
{
	struct row      r = { "", "--max-timeout 10 --keep-ansi", "{\"SANDBOX_ALLOWED_IMPORTS\":\" math , json,,os.path \",\"SANDBOX_ENABLE_DATA_SCIENCE\":\"Yes\"}",
				"export SANDBOX_DEFAULT_MEMORY_LIMIT = \"128m\" # of each\n", "{\"yield_after\":0.25,\"allow_host\":[\"a.example\",\"b.example:1\"]}", NULL };
	scoped_settings s = { 0 };
	struct err      e = { 0 };

	tap_ok(take_all(&s, &r, &e) == 0 && s.timeout_ms == 10000 && s.max_timeout_ms == 10000, "the usual time is never more than the most");
	tap_ok(json_array_size(s.allowed_imports) == 3 && is_item(s.allowed_imports, 0, "math") && is_item(s.allowed_imports, 2, "os.path"), "a list is trimmed, and empty entries are none");
	tap_ok(s.memory_bytes == 128 * MIB, "a size in quotes with a comment behind it is read");
	tap_ok(s.yield_after_ms == 250, "the file counts in seconds, too");
	tap_ok(json_array_size(s.allow_host) == 2 && is_item(s.allow_host, 1, "b.example:1"), "a list of the file is one");
	tap_is(s.profile, "data-science", "a published switch is a profile");
	tap_ok(s.keep_ansi && !s.echo_result, "a switch is on when it is said");
}

static void check_notes(void)
{
	struct row      r = { "", NULL, "{\"SANDBOX_ENABLE_CONTAINER_MODE\":\"false\",\"SANDBOX_CONTAINER_IMAGE\":\"python:3\"}", NULL, NULL, NULL };
	scoped_settings s = { 0 };
	struct err      e = { 0 };

	tap_ok(take_all(&s, &r, &e) == 0 && json_array_size(s.notes) == 2, "what is accepted and not used is told");
	tap_is(json_string_value(json_array_get(s.notes, 0)), "SANDBOX_ENABLE_CONTAINER_MODE in the environment: every run is jailed, whatever the value", "with its name");
}

static char *printed(void (*print)(const struct settings *, FILE *), const struct settings *s)
{
	char  *text = NULL;
	size_t len;
	FILE  *out = open_memstream(&text, &len);

	print(s, out);
	fclose(out);
	return text;
}

static void check_print(void)
{
	struct row      r = { "", "--http --timeout 1.5", "{\"SANDBOX_API_TOKEN\":\"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopq\"}", NULL, NULL, NULL };
	scoped_settings s = { 0 };
	struct err      e = { 0 };
	char           *text;

	tap_ok(take_all(&s, &r, &e) == 0, "a token is taken");
	text = printed(settings_print, &s);
	tap_ok(!strstr(text, "abcdefghij") && strstr(text, "set (43 characters)"), "it is never printed, but its length");
	tap_ok(strstr(text, "timeout             1.5                   --timeout\n") && strstr(text, "\nport                9015                  default\n"), "a value is printed with its origin");
	free(text);
}

static void check_rows(void)
{
	char name[SETTING_NAME_MAX];

	for (int id = 0; id < SETTING_COUNT; id++) {
		setting_spell_name((enum setting_id)id, SPELT_VARIABLE, name, sizeof name);
		tap_ok(setting_find_by_name(SPELT_VARIABLE, name) == id && strncmp(name, "BRIG_MCP_", 9) == 0, "%s is found by its name", name);
		tap_ok((setting_rows[id].field.type == FIELD_CHOICE) == (setting_rows[id].field.choices != NULL), "%s has choices if it is one of them", name);
	}
	tap_ok(settings_exit_status(&(struct err){ .kind = ERR_DENIED }) == 1 && settings_exit_status(&(struct err){ .kind = ERR_BAD_SPEC }) == 2,
	       "the exit status of a missing token is one, of every other mistake two");
}

static void check_nearest(void)
{
	tap_ok(nearest_distance("timeout", "timeout") == 0 && nearest_distance("max_timeout", "MAX-timeout") == 0, "the same word in any spelling is near");
	tap_ok(nearest_distance("timeout", "tiemout") == 1 && nearest_distance("timeout", "timout") == 1, "so is one with a slip");
	tap_ok(nearest_distance("port", "profile") == NEAREST_FAR && nearest_distance("", "profile") == NEAREST_FAR, "another word is far");
	tap_ok(nearest_distance("cpus", "gpu") == NEAREST_FAR && nearest_distance("ro", "foo") == NEAREST_FAR && nearest_distance("memory", "mount") == NEAREST_FAR, "so is one that shares a few letters of a short word");
	tap_ok(nearest_distance("memory", "mem") < NEAREST_FAR && nearest_distance("timeout", "time") < NEAREST_FAR, "the beginning of a word is near");
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check_row(&rows[i]);
	check_order();
	check_names();
	check_values();
	check_notes();
	check_print();
	check_rows();
	check_nearest();
	return tap_done();
}
