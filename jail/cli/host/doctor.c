#define _GNU_SOURCE
#include "doctor.h"

#include "color.h"
#include "command.h"
#include "fd.h"
#include "option.h"
#include "paths.h"
#include "probe.h"
#include "surroundings.h"
#include "text.h"

#include <elf.h>
#include <fcntl.h>
#include <jansson.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COLUMNS = 100, MARGIN = 8, ROW_COLUMNS = 19 + 2 + 8 + 2 + 8 + 2 };

struct checkup {
	struct surroundings at;
	struct finding     *finding; /* one for each row of probe_rows */
	struct verdict      verdict;
	char                sentence[160];
};

struct choice {
	bool json, quiet, apparmor;
};

static const struct option_row options[] = {
	OPTION_SWITCH("json", 0, offsetof(struct choice, json), "Print one JSON object"),
	OPTION_SWITCH("quiet", 'q', offsetof(struct choice, quiet), "Print only what is missing or degraded, and the verdict"),
	OPTION_SWITCH("apparmor", 0, offsetof(struct choice, apparmor), "Print the AppArmor profile that lets this brig make user namespaces, and test nothing"),
	OPTION_END,
};

static const struct command_help help = {
	"brig doctor [--json | --quiet | --apparmor]",
	"Test what jails need on this host, and print what to change where something is missing.\n"
	"The status is 0 when the default profile can run, 1 when it cannot.",
	NULL,
};

/* Paths come from the environment: they may have any bytes, and where they were cut they may end inside a UTF-8 character. */
static void make_printable(char *text)
{
	bool utf8 = text_is_utf8(text, strlen(text));

	for (unsigned char *c = (unsigned char *)text; *c; c++)
		if (*c < 0x20 || *c == 0x7f || (!utf8 && *c >= 0x80))
			*c = '?';
}

static int run_all_probes(struct checkup *c)
{
	surroundings_detect(&c->at);
	c->finding = calloc(probe_rows_len, sizeof *c->finding);
	if (!c->finding)
		return -1;
	for (size_t i = 0; i < probe_rows_len; i++) {
		struct finding *f = &c->finding[i];

		probe_run(&probe_rows[i], &c->at, probe_deadline_ms(&probe_rows[i]), f);
		make_printable(f->detail);
		make_printable(f->cause);
		make_printable(f->fix);
		verdict_add_result(&c->verdict, i, probe_rows[i].need, f->result, c->at.is_root || c->at.is_monitor);
	}
	verdict_print_sentence(&c->verdict, probe_rows[c->verdict.first].name, c->sentence, sizeof c->sentence);
	return 0;
}

/* Prints text from column `at` on, breaks lines at blanks and indents them to `at`. A long word stays whole, so that it can be copied. */
static void print_wrapped(int at, const char *text)
{
	int indent = at;

	while (*text) {
		int n = (int)strcspn(text, " ");

		if (at > indent && at + 1 + n > COLUMNS)
			at = printf("\n%*s", indent, "") - 1;
		else if (at > indent)
			at += printf(" ");
		at += printf("%.*s", n, text);
		text += n;
		text += strspn(text, " ");
	}
	putchar('\n');
}

enum same { SAME_CAUSE = 1, SAME_FIX = 2 };

/* The name of the first row above that has the same cause or fix, or both, as `what` asks; or NULL. */
static const char *find_earlier_row_with(const struct finding *all, size_t i, unsigned what)
{
	for (size_t j = 0; j < i; j++) {
		unsigned same = (strcmp(all[j].cause, all[i].cause) == 0 ? SAME_CAUSE : 0) |
				(strcmp(all[j].fix, all[i].fix) == 0 ? SAME_FIX : 0);

		if (all[j].result != RESULT_OK && (same & what) == what)
			return probe_rows[j].name;
	}
	return NULL;
}

/* Prints each cause and each fix once: one missing thing can fail forty rows. */
static void print_cause_and_fix(const struct finding *all, size_t i)
{
	const char *both = find_earlier_row_with(all, i, SAME_CAUSE | SAME_FIX), *fix = find_earlier_row_with(all, i, SAME_FIX);

	if (both) {
		printf("%*sas for %s\n", MARGIN, "", both);
		return;
	}
	print_wrapped(printf("%*scause: ", MARGIN, ""), all[i].cause);
	if (fix)
		printf("%*sfix: as for %s\n", MARGIN, "", fix);
	else
		print_wrapped(printf("%*sfix: ", MARGIN, ""), all[i].fix);
}

static void print_finding(const struct finding *all, size_t i)
{
	const struct probe_row *row    = &probe_rows[i];
	enum result             result = all[i].result;
	enum color              c = result == RESULT_OK ? COLOR_GOOD : result == RESULT_DEGRADED ? COLOR_WARNING : COLOR_BAD;

	printf("%-19s  %s%-8s%s  ", row->name, color_start_code(stdout, c), result_name(result), color_reset_code(stdout));
	printf("%-8s  ", need_name(row->need));
	print_wrapped(ROW_COLUMNS, all[i].detail[0] ? all[i].detail : row->purpose);
	if (result != RESULT_OK)
		print_cause_and_fix(all, i);
}

static const struct {
	const char *name, *words;
} modes[] = { { "user", "a plain user" }, { "root", "root" }, { "service", "the service's monitor" } };

static size_t mode_of_caller(const struct surroundings *at)
{
	return at->is_monitor ? 2 : at->is_root;
}

static void print_findings(const struct checkup *c, bool quiet)
{
	if (!quiet)
		printf("%-19s  %-8s  %-8s  DETAIL (as %s)\n", "WHAT", "RESULT", "NEEDED", modes[mode_of_caller(&c->at)].words);
	for (size_t i = 0; i < probe_rows_len; i++)
		if (!quiet || (c->finding[i].result != RESULT_OK && probe_rows[i].need != NEED_INFO))
			print_finding(c->finding, i);
	printf("%s%s%s\n", color_start_code(stdout, verdict_can_run(&c->verdict) ? COLOR_GOOD : COLOR_BAD), c->sentence, color_reset_code(stdout));
}

static int print_checkup_json(const struct checkup *c)
{
	json_t *rows = json_array(), *all;
	int     r;

	for (size_t i = 0; i < probe_rows_len; i++) {
		const struct probe_row *row = &probe_rows[i];
		const struct finding   *f   = &c->finding[i];
		bool                    ok  = f->result == RESULT_OK;

		json_array_append_new(rows, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "name", row->name,
						      "needed", need_name(row->need), "result", result_name(f->result),
						      "cause", ok ? "" : f->cause, "fix", ok ? "" : f->fix,
						      "detail", f->detail, "purpose", row->purpose));
	}
	all = json_pack("{s:b, s:s, s:s, s:s, s:o}", "can_run", verdict_can_run(&c->verdict), "mode", modes[mode_of_caller(&c->at)].name,
	                "kernel", c->at.kernel, "verdict", c->sentence, "rows", rows);
	r   = all ? json_dumpf(all, stdout, JSON_INDENT(2)) : -1;
	putchar('\n');
	json_decref(all);
	return r;
}

static bool is_static_program(const char *path)
{
	scoped_fd  fd = open(path, O_RDONLY | O_CLOEXEC);
	ElfW(Ehdr) head;
	ElfW(Phdr) part;

	if (fd < 0 || pread(fd, &head, sizeof head, 0) != sizeof head || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
		return false;
	for (size_t i = 0; i < head.e_phnum; i++)
		if (pread(fd, &part, sizeof part, (off_t)(head.e_phoff + i * sizeof part)) != sizeof part || part.p_type == PT_INTERP)
			return false;
	return true;
}

/*
 * The path is the profile's name as well: those of two trees do not replace each other. Its flag and its one rule are those of
 * packaging/apparmor/brig, which says why only brig has one.
 */
static int print_apparmor_profile(struct err *e)
{
	struct brig_paths at;
	char              path[PATH_SIZE + 8];

	if (brig_paths_find(&at, e) < 0)
		return -1;
	snprintf(path, sizeof path, "%s/brig", at.libexec);
	if (access(path, X_OK) < 0)
		snprintf(path, sizeof path, "%s", BRIG_BINDIR "/brig");
	if (!is_static_program(path))
		return err_set(e, ERR_BAD_SPEC, "%.200s is linked dynamically: with a profile, each user could have user namespaces in it through LD_PRELOAD; use a static build (BRIG_STATIC_LIBS, the default)", path);
	for (const char *c = path; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return err_set(e, ERR_BAD_SPEC, "the path of brig has a control character, which no AppArmor profile can have: move it");
	printf("# AppArmor profile for the brig of this path, which may then make user namespaces. Whoever can write there can make them with a program of their own.\n"
	       "abi <abi/4.0>,\n\nprofile \"");
	for (const char *c = path; *c; c++)
		printf("%s%c", strchr("\\\"?*[]{}^", *c) ? "\\" : "", *c);
	puts("\" flags=(unconfined) {\n  userns,\n}");
	if (strcmp(path, BRIG_BINDIR "/brig") == 0)
		puts("\n# The host's service: brigd.service names it (AppArmorProfile=).\nprofile brigd flags=(unconfined) {\n  userns,\n}");
	return 0;
}

int doctor_main(int argc, char **argv)
{
	struct checkup c      = { .finding = NULL };
	struct choice  choice = { 0 };
	struct err     e;
	int            n = options_parse(options, argc, argv, &choice, &e), status;

	if (n >= 0 && n + 1 < argc)
		n = err_set(&e, ERR_BAD_SPEC, "%.60s: one argument too many; see --help", argv[n + 1]);
	if (n < 0)
		return command_print_help_or_error(n, "doctor", options, &help, &e);
	if (choice.apparmor)
		return print_apparmor_profile(&e) < 0 ? command_print_help_or_error(-1, "doctor", options, &help, &e) : 0;
	if (run_all_probes(&c) < 0) {
		perror("brig doctor");
		return 1;
	}
	if (!choice.json)
		print_findings(&c, choice.quiet);
	status = verdict_can_run(&c.verdict) ? 0 : 1;
	if ((choice.json && print_checkup_json(&c) < 0) || fflush(stdout) != 0) {
		perror("brig doctor: write");
		status = 1;
	}
	free(c.finding);
	return status;
}
