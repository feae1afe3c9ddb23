/*
 * brig-metrics.c - brig metrics: the page that Prometheus reads, once or over HTTP; a program of its own, because
 * libmicrohttpd loads GnuTLS
 */
#include "file.h"
#include "metrics_page.h"
#include "metrics_server.h"
#include "privilege.h"
#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { STATUS_OK = 0, STATUS_FAILED = 1, STATUS_USAGE = 2 };

static int print_error(const struct err *e, int status)
{
	fprintf(stderr, "brig metrics: %s\n", e->text);
	return status;
}

/* All capabilities: privilege_keep_only_cap_kill() would leave root CAP_KILL. */
static int drop_all_capabilities(struct err *e)
{
	return privilege_drop_caps(e) < 0 ? -1 : privilege_set_no_new_privs(PRIVILEGE_NO_CAPS, e);
}

/* Drops all capabilities before it reads untrusted requests, and after it has bound a port that may be below 1024. */
static int serve_metrics(const char *at, struct err *e)
{
	struct metrics_listener l;
	int                     r;

	if (metrics_listener_open(&l, at, e) < 0)
		return -1;
	r = drop_all_capabilities(e) < 0 ? -1 : metrics_serve(&l, e);
	metrics_listener_close(&l);
	return r;
}

static int print_metrics(struct err *e)
{
	if (drop_all_capabilities(e) < 0 || metrics_page_print(stdout, METRICS_BRIGD_MS, e) < 0)
		return -1;
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : err_sys(e, "write to standard output");
}

static int parse_options(int argc, char **argv, const char **listen, bool *help, struct err *e)
{
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];

		if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
			*help = true;
		else if (begins_with(word, "--listen="))
			*listen = word + 9;
		else if (strcmp(word, "--listen") != 0)
			return err_set(e, ERR_BAD_SPEC, "%.60s: no such option; see brig metrics --help", word);
		else if (++i < argc)
			*listen = argv[i];
		else
			return err_set(e, ERR_BAD_SPEC, "--listen: needs an address, as 127.0.0.1:9464");
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *listen = NULL;
	bool        help   = false;
	struct err  e;

	if (argc < 1)
		return STATUS_USAGE;
	if (file_open_standard_fds() < 0) {
		fprintf(stderr, "brig metrics: descriptors 0 to 2 cannot be filled with /dev/null: %s\n",
			strerror(errno));
		return STATUS_FAILED;
	}
	if (parse_options(argc, argv, &listen, &help, &e) < 0)
		return print_error(&e, STATUS_USAGE);
	if (help) {
		puts("usage: brig metrics [--listen ADDRESS]\n\n"
		     "Print the figures of the brigd that runs here, in the text format of Prometheus.\n\n"
		     "      --listen ADDRESS  Serve them over HTTP, as /metrics, at 127.0.0.1:9464 or the like or at "
		     "the absolute path of a socket\n"
		     "  -h, --help            This text");
		return STATUS_OK;
	}
	if ((listen ? serve_metrics(listen, &e) : print_metrics(&e)) == 0)
		return STATUS_OK;
	return print_error(&e, e.kind == ERR_BAD_SPEC ? STATUS_USAGE : STATUS_FAILED);
}
