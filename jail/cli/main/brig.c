/* brig.c - main() of brig: chooses the subcommand */
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
	{ "run",     run_main,                "run a Python program in a jail" },
	{ "exec",    exec_main,               "run a command of the rootfs in a jail" },
	{ "session", session_main,            "keep a jail from one call to the next: files, live interpreters, commands" },
	{ "shell",   shell_main,              "start a shell at a terminal in a session" },
	{ "check",   check_main,              "report where a Python program breaks the rules of a profile, without executing it" },
	{ "ps",      ps_main,                 "list your runs" },
	{ "kill",    kill_main,               "end a run" },
	{ "stats",   stats_main,              "print what the service has done, and what it costs" },
	{ "metrics", exec_program_of_command, "print the figures of the service for Prometheus, or serve them over HTTP" },
	{ "reload",  reload_main,             "make the service read its configuration and profiles again" },
	{ "top",     top_main,                "show runs, ready cells and memory, each second anew" },
	{ "packages", packages_main,          "find packages for runs in a jail, and keep them; print where they are" },
	{ "explain", explain_main,            "print what a profile gives a run: limits, layers, system calls" },
	{ "doctor",  exec_program_of_command, "test what jails need on this host, and print what to change" },
	{ "profile", profile_main,            "list profiles, check them, print their JSON schema" },
	{ "rootfs",  exec_program_of_command, "build, list, verify and clean up rootfs trees" },
	{ "audit",   audit_main,              "print what the service ran or refused, for which user, and what it cost" },
	{ "help",    help_main,               "print the help of a command" },
	{ NULL, NULL, NULL },
};
/* clang-format on */

static const struct command *find_command(const char *name)
{
	const struct command *c = commands;

	while (c->name && strcmp(c->name, name) != 0)
		c++;
	return c->name ? c : NULL;
}

static void print_commands(FILE *out)
{
	fputs("usage: brig COMMAND [OPTION]...\n\nRuns untrusted Python programs in jails.\n\n", out);
	for (const struct command *c = commands; c->name; c++)
		fprintf(out, "  %-10s %s\n", c->name, c->doc);
	fputs("\n  -h, --help     this text (brig COMMAND --help has more)\n  -V, --version  print the version\n", out);
}

/* If the output could not be written, as on a full disk, brig has failed. */
static int flush_output(int status)
{
	if (status != STATUS_OK || (fflush(stdout) == 0 && !ferror(stdout)))
		return status;
	fprintf(stderr, "brig: write to standard output: %s\n", strerror(errno));
	return STATUS_FAILED;
}

static int report_unknown_command(const char *name)
{
	struct err e;

	err_set(&e, ERR_BAD_SPEC, "%.40s: no such command; see brig --help", name);
	fprintf(stderr, "brig: %s\n", e.text);
	return STATUS_USAGE;
}

/* Runs the command with --help: only the command knows its options. */
static int help_main(int argc, char **argv)
{
	const char           *name    = argc > 1 ? argv[1] : "help";
	const struct command *c       = find_command(name[0] == '-' ? "help" : name);
	char                 *words[] = { (char *)name, (char *)"--help", NULL };

	if (c && c->main != help_main)
		return c->main(2, words);
	if (!c)
		return report_unknown_command(name);
	print_commands(stdout);
	return STATUS_OK;
}

static bool is_one_of_two(const char *word, const char *one, const char *other)
{
	return strcmp(word, one) == 0 || strcmp(word, other) == 0;
}

int main(int argc, char **argv)
{
	const struct command *c;

	if (argc < 1)
		return STATUS_USAGE; /* only an attacker starts a program without argv[0] (CVE-2021-4034) */
	if (file_open_standard_fds() < 0) {
		fprintf(stderr, "brig: descriptors 0 to 2 cannot be filled with /dev/null: %s\n", strerror(errno));
		return STATUS_DENIED;
	}
	if (argc > 0 && strcmp(argv[0], "brigd") == 0) /* from a client's library or a user's unit: with brig's AppArmor profile and a clean environment */
		return exec_program_of_command(argc, argv);
	if (argc < 2) {
		print_commands(stderr);
		return STATUS_USAGE;
	}
	if (is_one_of_two(argv[1], "--help", "-h"))
		return flush_output(help_main(1, argv));
	if (is_one_of_two(argv[1], "--version", "-V")) {
		puts("brig " BRIG_VERSION);
		return flush_output(STATUS_OK);
	}
	c = find_command(argv[1]);
	return c ? flush_output(c->main(argc - 1, argv + 1)) : report_unknown_command(argv[1]);
}
