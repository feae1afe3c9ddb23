/* brigd.c - a service for many clients, or one client's own */
#define _GNU_SOURCE
#include "file.h"
#include "listener.h"
#include "private.h"
#include "service.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum {
	STATUS_OK            = 0,
	STATUS_FAILED        = 1,
	STATUS_USAGE         = 2,
	STATUS_MISCONFIGURED = 78 /* EX_CONFIG: a restart does not mend it */
};

struct brigd_options {
	struct service_options wanted;
	const char         *private_fd;
	bool                foreground, private, help, version;
};

#define AT(member) offsetof(struct brigd_options, member)
/* clang-format off */
static const struct option {
	const char *name, *arg;
	size_t      offset; /* of a bool, or of a text */
	const char *doc;
} options[] = {
	{ "--foreground", NULL,   AT(foreground),     "serve without systemd, until SIGINT or SIGTERM" },
	{ "--socket",     "PATH", AT(wanted.socket),  "listen at this socket" },
	{ "--config",     "FILE", AT(wanted.config),  "read this configuration instead of /etc/brig/brig.json" },
	{ "--private",    NULL,   AT(private),        "serve one client alone; used by brig, together with --fd" },
	{ "--fd",         "N",    AT(private_fd),     "the descriptor of the connection to that client" },
	{ "--help",       NULL,   AT(help),           "this text" },
	{ "--version",    NULL,   AT(version),        "print the version" },
};
/* clang-format on */

static int print_usage(FILE *out, int status)
{
	fputs("usage: brigd [--foreground] [--socket PATH] [--config FILE]\n       brigd --private --fd N\n\nRuns "
	      "programs in jails for the users of this host. Manual: man brigd\n\n",
	      out);
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		fprintf(out, "  %-13s %-5s %s\n", options[i].name, options[i].arg ? options[i].arg : "",
			options[i].doc);
	return status;
}

static int parse_options(struct brigd_options *w, int argc, char **argv, struct err *e)
{
	for (int i = 1; i < argc; i++) {
		const struct option *o = options;

		while (o < options + ARRAY_LEN(options) && strcmp(o->name, argv[i]) != 0)
			o++;
		if (o == options + ARRAY_LEN(options))
			return err_set(e, ERR_BAD_SPEC, "%.60s: no such option; see brigd --help", argv[i]);
		if (!o->arg)
			*(bool *)((char *)w + o->offset) = true;
		else if (++i < argc)
			*(const char **)((char *)w + o->offset) = argv[i];
		else
			return err_set(e, ERR_BAD_SPEC, "%s: needs %s", o->name, o->arg);
	}
	if (w->private != !!w->private_fd)
		return err_set(e, ERR_BAD_SPEC, "--private and --fd belong together");
	if (w->private && (w->foreground || w->wanted.socket || w->wanted.config))
		return err_set(e, ERR_BAD_SPEC, "--private goes with --fd and nothing else");
	return 0;
}

static int print_error(const struct err *e, int status)
{
	fprintf(stderr, "brigd: %s\n", e->text);
	return status;
}

static int run_brigd(const struct brigd_options *w)
{
	static const int statuses[] = { [SERVICE_ENDED]         = STATUS_OK,
					[SERVICE_FAILED]        = STATUS_FAILED,
					[SERVICE_MISCONFIGURED] = STATUS_MISCONFIGURED };
	struct err       e;
	enum service_end end;

	if (w->private) /* first: private_main() can send the client what goes wrong */
		return private_main(w->private_fd, &e) < 0 ? print_error(&e, STATUS_FAILED) : STATUS_OK;
	if (file_open_standard_fds() < 0)
		return STATUS_FAILED;
	if (!w->foreground && !listener_is_given_by_systemd() &&
	    err_set(&e, ERR_BAD_SPEC, "systemd gave no socket; type: brigd --foreground") < 0)
		return print_error(&e, STATUS_FAILED);
	end = service_main(&w->wanted, &e);
	return end == SERVICE_ENDED ? STATUS_OK : print_error(&e, statuses[end]);
}

int main(int argc, char **argv)
{
	struct brigd_options w = { 0 };
	struct err   e;

	if (argc < 1)
		return STATUS_USAGE; /* only an attacker starts a program without argv[0] (CVE-2021-4034) */
	/* if it is ignored, as some callers leave it, the kernel keeps no status of a child */
	signal(SIGCHLD, SIG_DFL);
	if (parse_options(&w, argc, argv, &e) < 0)
		return print_error(&e, STATUS_USAGE);
	if (w.help)
		return print_usage(stdout, STATUS_OK);
	if (w.version)
		return puts("brigd " BRIG_VERSION) < 0 ? STATUS_FAILED : STATUS_OK;
	return run_brigd(&w);
}
