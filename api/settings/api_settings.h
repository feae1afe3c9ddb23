/*
 * api_settings.h - the options of brig-api.
 *
 * They are borrowed from argv, except the texts that api_settings_done() frees.
 */
#pragma once
#include "brigd_connection.h"
#include "interface.h"
#include "option.h"

enum { API_LIST_MAX = 32, API_HOST_MAX = 256 };

struct api_settings {
	const char   *listen, *token_file, *apis, *profile;
	bool          insecure_loopback;
	const char   *allow_host[API_LIST_MAX + 1], *allow_origin[API_LIST_MAX + 1];
	uint64_t      wait_ms, drain_ms, runs, queue, sessions, connections, body_bytes;
	unsigned      server; /* enum brigd_want */
	bool          help, version, check, print_config, print_openapi;

	char          host[API_HOST_MAX]; /* of listen */
	uint64_t      port;
	interface_set interfaces;         /* of apis */
};

extern const struct option_row api_options[];

/* Parses the command line, and refuses settings that contradict each other. */
must_use int api_settings_parse(struct api_settings *ret, int argc, char **argv, struct err *e);
/* NAME VALUE, a line each. */
void         api_settings_print(const struct api_settings *s, FILE *out);
void         api_settings_print_help(FILE *out);
