/* brig.c - one word chooses what is done */
#include "command.h"
#include "file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int help_main(int argc, char **argv);

/* clang-format off */
static const struct command {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *doc;
} commands[] = {
	{ "run",     run_main,     "run a Python program in a jail" },
	{ "exec",    exec_main,    "run a command of the rootfs in a jail" },
	{ "check",   check_main,   "say what a Python program may not do, without executing it" },
	{ "ps",      ps_main,      "list the runs of the brigd that runs here" },
	{ "kill",    kill_main,    "end one of them" },
	{ "stats",   stats_main,   "print what that brigd has done, and what it costs" },
	{ "metrics", metrics_main, "print the figures of that brigd for Prometheus, or serve them over HTTP" },
	{ "reload",  reload_main,  "have that brigd read its configuration and profiles again" },
	{ "top",     top_main,     "show zygotes, cells that stand ready, and runs, again and again" },
	{ "explain", explain_main, "print what a profile means, layer by layer" },
	{ "doctor",  doctor_command, "try what a jail needs on this host, and say what to change" },
	{ "profile", profile_main, "list, check or describe profiles" },
	{ "rootfs",  rootfs_main,  "build, list, verify and clean up rootfs trees" },
	{ "audit",   audit_main,   "print what was run or refused here, by whom, and what it cost" },
	{ "help",    help_main,    "print the options of one of these" },
	{ NULL, NULL, NULL },
};
/* clang-format on */

static const struct command *find(const char *name)
{
	const struct command *c = commands;

	while (c->name && strcmp(c->name, name) != 0)
		c++;
	return c->name ? c : NULL;
}

static void usage(FILE *out)
{
	fputs("usage: brig COMMAND [OPTION]...\n\nRuns Python that nobody trusts yet, in a jail.\n\n", out);
	for (const struct command *c = commands; c->name; c++)
		fprintf(out, "  %-10s %s\n", c->name, c->doc);
	fputs("\n  -h, --help     this text (brig COMMAND --help says more)\n  -V, --version  which brig this is\n", out);
}

/* A full disk is no success. */
static int flush(int status)
{
	if (status != STATUS_OK || (fflush(stdout) == 0 && !ferror(stdout)))
		return status;
	fprintf(stderr, "brig: write to standard output: %s\n", strerror(errno));
	return STATUS_FAILED;
}

static int complain(const char *name)
{
	struct err e;

	err_set(&e, ERR_BAD_SPEC, "%.40s: no such command; see brig --help", name);
	fprintf(stderr, "brig: %s\n", e.text);
	return STATUS_USAGE;
}

/* What the command says of itself: its own options are not known here. */
static int help_main(int argc, char **argv)
{
	const char           *name    = argc > 1 ? argv[1] : "help";
	const struct command *c       = find(name[0] == '-' ? "help" : name);
	char                 *words[] = { (char *)name, (char *)"--help", NULL };

	if (c && c->main != help_main)
		return c->main(2, words);
	if (!c)
		return complain(name);
	usage(stdout);
	return STATUS_OK;
}

static bool is_either(const char *word, const char *one, const char *other)
{
	return strcmp(word, one) == 0 || strcmp(word, other) == 0;
}

int main(int argc, char **argv)
{
	const struct command *c;

	if (argc < 1)
		return STATUS_USAGE; /* nobody starts us like that but an attacker (CVE-2021-4034) */
	if (file_fill_standard() < 0) {
		fprintf(stderr, "brig: descriptors 0 to 2 cannot be filled with /dev/null: %s\n", strerror(errno));
		return STATUS_DENIED;
	}
	if (argc < 2) {
		usage(stderr);
		return STATUS_USAGE;
	}
	if (is_either(argv[1], "--help", "-h"))
		return flush(help_main(1, argv));
	if (is_either(argv[1], "--version", "-V")) {
		puts("brig " BRIG_VERSION);
		return flush(STATUS_OK);
	}
	c = find(argv[1]);
	return c ? flush(c->main(argc - 1, argv + 1)) : complain(argv[1]);
}
