/* brig-api.c - programs in jails, for clients of SandboxFusion, NeMo-Skills, Piston and Judge0, over HTTP */
#define _GNU_SOURCE
#include "api_check.h"
#include "api_server.h"
#include "exact.h"
#include "file.h"
#include "openapi.h"
#include "route.h"
#include "stop.h"
#include "trust.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATUS_OK = 0, STATUS_FAILED = 1, STATUS_USAGE = 2 };
#define TOKEN_FILE_MAX (64 * KIB)

static int api_print_error(const struct err *e, int status)
{
	fprintf(stderr, "brig-api: %s\n", e->text);
	return status;
}

static int read_tokens(struct api_tokens *ret, const struct api_settings *s, struct err *e)
{
	scoped_bytes b = { 0 };
	int          r;

	if (s->insecure_loopback) {
		api_tokens_set_none(ret);
		return 0;
	}
	if (!s->token_file)
		return err_set(e, ERR_BAD_SPEC,
			       "clients need a token; make one with:  (umask 077; openssl rand -hex 32 >brig-token)  "
			       "and use:  --token-file brig-token; or, on a loopback address only:  "
			       "--insecure-loopback");
	if (trust_read_secret(s->token_file, TOKEN_FILE_MAX, &b, e) < 0)
		return err_wrap(e, "--token-file");
	r = strlen(b.data) == b.len ? api_tokens_parse(ret, b.data, e)
				    : err_set(e, ERR_BAD_SPEC, "it is not text");
	explicit_bzero(b.data, b.len); /* free() would leave most of it */
	return r < 0 ? err_wrap(e, "--token-file %s", s->token_file) : 0;
}

static void on_api_stop_signal(void *owner)
{
	struct api_server *server = owner;

	api_server_drain(server, server->api->settings->drain_ms);
}

static int serve_api(struct api *a, struct err *e)
{
	struct api_server server;
	struct stop       stop;
	char              served[128];
	int               r;

	if (api_server_open(&server, a, e) < 0)
		return -1;
	r = stop_open(&stop, &a->loop, on_api_stop_signal, &server, e);
	if (r == 0) {
		fprintf(stderr, "brig-api: serving %s (%s)%s\n", server.url,
			interface_set_print(a->settings->interfaces, served, sizeof served),
			a->tokens.wanted ? "" : " without a token, to every user of this host");
		r = loop_run(&a->loop, &a->ends, e);
		stop_close(&stop);
	}
	api_server_close(&server);
	return r;
}

static int run_api(const struct api_settings *s, struct err *e)
{
	struct api a;
	int        r;

	if (api_open(&a, s, e) < 0)
		return -1;
	r = read_tokens(&a.tokens, s, e);
	if (r == 0)
		r = s->check ? api_check_run(&a, stdout, e) : serve_api(&a, e);
	api_close(&a);
	return r;
}

static int print_api_description(interface_set served)
{
	json_t *all  = openapi_to_json(routes, served);
	size_t  len;
	char   *text = all ? json_dump_exact(all, JSON_INDENT(1), &len) : NULL;

	if (text)
		puts(text);
	free(text);
	json_decref(all);
	return text ? STATUS_OK : STATUS_FAILED;
}

static int print_for_people(const struct api_settings *s)
{
	int status = STATUS_OK;

	if (s->version)
		puts("brig-api " BRIG_VERSION);
	else if (s->help)
		api_settings_print_help(stdout);
	else if (s->print_openapi)
		status = print_api_description(s->interfaces);
	else
		api_settings_print(s, stdout);
	return fflush(stdout) == 0 && !ferror(stdout) ? status : STATUS_FAILED;
}

int main(int argc, char **argv)
{
	struct api_settings s;
	struct err          e = { 0 };

	if (argc < 1)
		return STATUS_USAGE;
	if (file_open_standard_fds() < 0) {
		fprintf(stderr, "brig-api: descriptors 0 to 2: %s\n", strerror(errno));
		return STATUS_FAILED;
	}
	if (api_settings_parse(&s, argc, argv, &e) < 0)
		return api_print_error(&e, STATUS_USAGE);
	if (s.help || s.version || s.print_config || s.print_openapi)
		return print_for_people(&s);
	if (run_api(&s, &e) == 0)
		return STATUS_OK;
	return api_print_error(&e, e.kind == ERR_BAD_SPEC ? STATUS_USAGE : STATUS_FAILED);
}
