#include "api_settings.h"

#include "inet.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

static const char *const servers[] = {
	[BRIGD_ANY] = "any", [BRIGD_PRIVATE] = "private", [BRIGD_SERVICE] = "service", NULL,
};

/* clang-format off */
#define AT(member) offsetof(struct api_settings, member)
#define ROW(word, type, member, min, max, preset, arg, choices, doc) \
	{ { word, type, AT(member), min, max, preset, doc, choices, NULL }, 0, arg, NULL, false }
const struct option_row api_options[] = {
	OPTION_TEXT("listen", 0, AT(listen), "ADDRESS:PORT", "Where to serve; default: 127.0.0.1:8380"),
	OPTION_TEXT("token-file", 0, AT(token_file), "FILE", "A token, or a line NAME:SHA256 for each client"),
	OPTION_SWITCH("insecure-loopback", 0, AT(insecure_loopback),
		      "Serve every user of this host without a token, on a loopback address only"),
	OPTION_TEXT("apis", 0, AT(apis), "LIST", "The interfaces to serve, with commas; default: all"),
	OPTION_TEXT("profile", 0, AT(profile), "NAME", "The profile of runs; default: basic"),
	ROW("wait", FIELD_MS, wait_ms, 0, 3600000, 60000, NULL, NULL,
	    "How long a run may wait while brig is full"),
	ROW("runs", FIELD_COUNT, runs, 1, 4096, 256, NULL, NULL,
	    "Runs at once; further ones wait"),
	ROW("queue", FIELD_COUNT, queue, 0, 65536, 4096, NULL, NULL,
	    "Runs that may wait; further ones are refused"),
	ROW("sessions", FIELD_COUNT, sessions, 0, 1024, 16, NULL, NULL,
	    "Sessions of one token that stay between requests"),
	ROW("body", FIELD_SIZE, body_bytes, 1 * KIB, 256 * MIB, 16 * MIB, NULL, NULL,
	    "The largest request"),
	ROW("max-connections", FIELD_COUNT, connections, 1, 65536, 4096, NULL, NULL,
	    "Connections at once"),
	ROW("drain", FIELD_MS, drain_ms, 0, 3600000, 5000, NULL, NULL,
	    "How long runs may go on after SIGTERM"),
	ROW("server", FIELD_CHOICE, server, 0, 0, BRIGD_ANY, NULL, servers,
	    "Which brigd: the service, a private one, or any"),
	ROW("allow-host", FIELD_TEXTS, allow_host, 0, API_LIST_MAX, 0, "NAME", NULL,
	    "Serve requests to this host name, too; may be repeated"),
	ROW("allow-origin", FIELD_TEXTS, allow_origin, 0, API_LIST_MAX, 0, "ORIGIN", NULL,
	    "Pages of this origin may call; may be repeated"),
	OPTION_SWITCH("check", 0, AT(check), "Run one program as a client would, and print the result"),
	OPTION_SWITCH("print-config", 0, AT(print_config), "Print each setting"),
	OPTION_SWITCH("print-openapi", 0, AT(print_openapi), "Print the OpenAPI description of these interfaces"),
	OPTION_SWITCH("version", 'V', AT(version), "Print the version"),
	OPTION_END,
};
/* clang-format on */

void api_settings_print_help(FILE *out)
{
	fputs("usage: brig-api [OPTION...]\n\n"
	      "Serve HTTP interfaces that run programs in jails of brig; see brig-api(1).\n\n",
	      out);
	options_print(api_options, out);
	fputs("\nInterfaces:\n", out);
	for (int i = 0; i < INTERFACE_COUNT; i++)
		fprintf(out, "  %-24s %s\n", interface_name((enum interface)i), interface_doc((enum interface)i));
}

void api_settings_print(const struct api_settings *s, FILE *out)
{
	char all[128];

	for (const struct option_row *row = api_options; row->field.name; row++) {
		fprintf(out, "%-18s ", row->field.name);
		if (row->field.type == FIELD_TEXTS)
			for (const char *const *p = (const char *const *)((const char *)s + row->field.offset); *p; p++)
				fprintf(out, "%s ", *p);
		else if (row->field.offset == AT(apis))
			fputs(interface_set_print(s->interfaces, all, sizeof all), out);
		else if (row->field.type != FIELD_STR || *(const char *const *)((const char *)s + row->field.offset))
			field_print(&row->field, s, out);
		fputc('\n', out);
	}
}

/* "127.0.0.1:8380", "[::1]:8380" */
static int parse_listen(struct api_settings *s, struct err *e)
{
	const char             *text = s->listen, *colon = strrchr(text, ':');
	bool                    six  = *text == '[' && colon && colon > text + 1 && colon[-1] == ']';
	size_t                  len  = colon ? (size_t)(colon - text) - (six ? 2 : 0) : 0;
	struct sockaddr_storage address;
	socklen_t               size;

	if (!len || len >= sizeof s->host || text_to_u64(colon + 1, &s->port) < 0 || s->port > 65535)
		return err_set(e, ERR_BAD_SPEC, "--listen: expected ADDRESS:PORT, like 127.0.0.1:8380, not \"%.60s\"",
			       text);
	memcpy(s->host, text + six, len);
	s->host[len] = 0;
	if (!inet_parse_address(s->host, s->port, &address, &size))
		return err_set(e, ERR_BAD_SPEC, "--listen: \"%.60s\" is not an address in numbers", s->host);
	return 0;
}

static int api_settings_judge(struct api_settings *s, struct err *e)
{
	if (parse_listen(s, e) < 0)
		return -1;
	if (s->apis && interface_set_parse(s->apis, &s->interfaces, e) < 0)
		return err_wrap(e, "--apis");
	if (!text_is_name(s->profile))
		return err_set(e, ERR_BAD_SPEC, "--profile: \"%.60s\" is not a name of a profile", s->profile);
	if (s->insecure_loopback && s->token_file)
		return err_set(e, ERR_BAD_SPEC, "--insecure-loopback: needs no --token-file; leave one of them out");
	if (s->insecure_loopback && !inet_host_is_loopback(s->host))
		return err_set(e, ERR_BAD_SPEC,
			       "--insecure-loopback: needs a loopback address, not %s; use --listen 127.0.0.1:8380, or "
			       "give a --token-file",
			       s->host);
	return 0;
}

int api_settings_parse(struct api_settings *ret, int argc, char **argv, struct err *e)
{
	int taken;

	*ret = (struct api_settings){ .listen = "127.0.0.1:8380", .profile = "basic", .interfaces = INTERFACE_ALL };
	for (const struct option_row *row = api_options; row->field.name; row++)
		if (field_is_number(&row->field))
			*(uint64_t *)field_at(&row->field, ret) = row->field.preset;
	taken     = options_parse(api_options, argc, argv, ret, e);
	ret->help = taken == OPTIONS_HELP;
	if (ret->help || ret->version)
		return 0;
	if (taken == OPTIONS_FAILED)
		return -1;
	if (taken + 1 < argc)
		return err_set(e, ERR_BAD_SPEC,
			       "\"%.60s\" is not an option, and brig-api takes no other arguments; see --help",
			       argv[taken + 1]);
	return api_settings_judge(ret, e);
}
