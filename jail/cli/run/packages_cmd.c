/* packages_cmd.c - brig packages: makes the layer for runs with the same packages, and prints its directory */
#define _GNU_SOURCE
#include "one_run.h"
#include "packages.h"

#include "fd.h"

#include <fcntl.h>
#include <stdio.h>

static int packages_set_words(struct request *r, char **words, int n, struct err *e)
{
	if (n > WITH_MAX)
		return err_set(e, ERR_BAD_SPEC, "more than %d packages; write them into a file for --requirements",
			       WITH_MAX);
	for (int i = 0; i < n; i++)
		r->with[i] = words[i];
	r->script = r->program != NULL;
	return 0;
}

static int packages_print_place(struct request *r, const char *command)
{
	scoped_fd  program = r->script ? open(r->program, O_RDONLY | O_CLOEXEC | O_NOCTTY) : -1;
	struct err e;

	if (r->script && program < 0)
		return command_print_error(command, (err_sys(&e, "%s", r->program), &e), STATUS_FAILED);
	if (packages_open(r, program, one_run_connect_and_run, &e) < 0)
		return command_print_error(command, &e, STATUS_FAILED);
	puts(r->layer.path);
	return STATUS_OK;
}

int packages_main(int argc, char **argv)
{
	return one_run_main(argc, argv, &(struct one_run_way){
		.by   = BY_PACKAGES,
		.help = { "brig packages [OPTION]... [PACKAGE]...",
			  "Find packages in a jail, keep them for runs with the same ones, and print their directory.",
			  "Wheels only. The file requirements.txt in that directory has the versions and hashes; "
			  "brig rootfs gc removes what no run has used for 30 days." },
		.take      = packages_set_words,
		.carry_out = packages_print_place,
	});
}
