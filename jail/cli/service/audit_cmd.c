/* audit_cmd.c - brig audit: what was run or refused on this host, for which user, and what it cost */
#define _GNU_SOURCE
#include "audit_filter.h"
#include "clock.h"
#include "command.h"
#include "file.h"
#include "trust.h"
#include "option.h"
#include "text.h"
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONFIG "/etc/brig/brig.json"

enum { FILES_MAX = 100 };

struct asked {
	const char         *file;
	bool                json;
	struct audit_filter filter;
	int64_t             now_us;
};

struct found {
	unsigned long long garbled;
	char               first[4200]; /* FILE:LINE of the first */
};

/* --- the command line --- */

static const struct command_help help = {
	"brig audit [OPTION]...", "Print what the service ran or refused on this host, oldest first.", NULL,
};

static int set_filter_option(void *into, const struct option_row *row, const char *value, struct err *e)
{
	const struct audit_filter_row *filter = audit_filter_rows;
	struct asked                  *a      = into;

	while (strcmp(filter->option, row->field.name) != 0)
		filter++;
	return audit_filter_set(&a->filter, filter, value, a->now_us, e) < 0 ? err_wrap(e, "--%s", row->field.name) : 0;
}

static void build_options(struct option_row rows[AUDIT_FILTERS + 3])
{
	const struct option_row others[] = {
		OPTION_TEXT("file", 0, offsetof(struct asked, file), "FILE", "Read this file; default: the one that " CONFIG " names"),
		OPTION_SWITCH("json", 0, offsetof(struct asked, json), "Print the lines as they are in the file"),
		OPTION_END,
	};

	for (size_t i = 0; i < AUDIT_FILTERS; i++)
		rows[i] = (struct option_row){ .field = { .name = audit_filter_rows[i].option, .type = FIELD_STR, .doc = audit_filter_rows[i].doc },
					       .arg   = audit_filter_rows[i].arg,
					       .set   = set_filter_option };
	memcpy(rows + AUDIT_FILTERS, others, sizeof others);
}

/* --- the file and its predecessors --- */

struct files {
	FILE *in[FILES_MAX]; /* the youngest first */
	char  path[FILES_MAX][4096];
	struct {
		dev_t dev;
		ino_t ino;
	} id[FILES_MAX];
	size_t n;
};

static bool is_open_already(const struct files *f, const struct stat *st)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->id[i].dev == st->st_dev && f->id[i].ino == st->st_ino)
			return true;
	return false;
}

/* O_NONBLOCK: opening a FIFO must not block. For a missing file e->errnum is ENOENT. */
static int open_audit_file(struct files *f, const char *path, struct err *e)
{
	int         fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "%s", path);
	if (!S_ISREG(st.st_mode) || is_open_already(f, &st)) { /* the file was renamed meanwhile, and is open already */
		close(fd);
		return S_ISREG(st.st_mode) ? 0 : err_set(e, ERR_BAD_SPEC, "%s: not a regular file", path);
	}
	f->in[f->n] = fdopen(fd, "r");
	if (!f->in[f->n]) {
		close(fd);
		return err_set(e, ERR_LIMIT, "out of memory");
	}
	f->id[f->n].dev = st.st_dev;
	f->id[f->n].ino = st.st_ino;
	snprintf(f->path[f->n++], sizeof f->path[0], "%s", path);
	return 0;
}

/* Opens the youngest first, and all before any is read, so that a rotation meanwhile hides no file. A crash can leave a gap in the numbers. */
static int open_audit_files(struct files *f, const char *file, struct err *e)
{
	char path[sizeof f->path[0]];

	for (unsigned n = 0; n < FILES_MAX; n++) {
		if (snprintf(path, sizeof path, n ? "%s.%u" : "%s", file, n) >= (int)sizeof path)
			return err_set(e, ERR_BAD_SPEC, "%.60s...: the path is too long", file);
		if (open_audit_file(f, path, e) < 0 && e->errnum != ENOENT)
			return -1;
	}
	return f->n ? 0 : err_set(e, ERR_MISSING, "%s: %s", file, strerror(ENOENT));
}

/* --- lines --- */

/* Reads the next line, without its newline. False: end of file. Of a line longer than max the rest is skipped, and *len is max + 1. */
static bool read_line(FILE *in, char *line, size_t max, size_t *len)
{
	int c;

	*len = 0;
	while ((c = getc_unlocked(in)) != EOF && c != '\n') {
		if (*len < max)
			line[*len] = (char)c;
		*len += *len <= max;
	}
	return c != EOF || *len > 0;
}

static bool print_audit_entry(const struct asked *a, const struct audit_entry *entry)
{
	char    text[AUDIT_LINE_MAX + 1];
	json_t *json = audit_entry_to_json(entry);
	size_t  len  = a->json ? audit_json_to_line(json, text) : audit_json_to_words(json, text);

	json_decref(json);
	if (!a->json)
		text[len++] = '\n';
	return fwrite(text, 1, len, stdout) == len;
}

/* Prints from the parsed entry: no byte of the file reaches the terminal unchecked. */
static void print_matching_line(const struct asked *a, const char *path, unsigned long long number, const char *line, size_t len,
				struct found *found)
{
	struct audit_entry entry;
	struct err         e;
	json_t            *from = len < AUDIT_LINE_MAX ? audit_entry_parse(line, len, &entry, &e) : NULL;

	if (!from && found->garbled++ == 0)
		snprintf(found->first, sizeof found->first, "%s:%llu", path, number);
	if (from && audit_filter_matches(&a->filter, &entry))
		print_audit_entry(a, &entry);
	json_decref(from);
}

static int print_audit_files(const struct asked *a, struct err *e)
{
	struct files *f     = calloc(1, sizeof *f);
	struct found  found = { 0 };
	char          line[AUDIT_LINE_MAX];
	size_t        len;
	int           r;

	if (!f)
		return err_set(e, ERR_LIMIT, "out of memory");
	r = open_audit_files(f, a->file, e);
	for (size_t i = f->n; r == 0 && i-- > 0;) {
		FILE *in = f->in[i];

		for (unsigned long long number = 1; !ferror(stdout) && read_line(in, line, sizeof line, &len); number++)
			if (len) /* after a start brigd writes a newline first, because a crash may have cut the last line */
				print_matching_line(a, f->path[i], number, line, len, &found);
		r = ferror(in) ? err_sys(e, "%s", f->path[i]) : 0;
	}
	text_make_plain(found.first);
	if (found.garbled)
		fprintf(stderr, "brig audit: %llu line%s could not be read, the first is %s\n", found.garbled,
			found.garbled == 1 ? "" : "s", found.first);
	while (f->n)
		fclose(f->in[--f->n]);
	free(f);
	return r;
}

/* --- which file --- */

/* Reads audit.file from the configuration. 1: there is no configuration, or it names no file. */
static int find_configured_file(char file[4096], struct err *e)
{
	scoped_bytes bytes = { 0 };
	scoped_json *json  = NULL;
	const char  *name;
	int          r = 1;

	if (trust_read(CONFIG, WIRE_MAX, &bytes, e) < 0)
		return e->errnum == ENOENT ? 1 : err_wrap(e, "the audit's file is not known, name it with --file");
	json = wire_parse(bytes.data, bytes.len, WIRE_MAX, e);
	if (!json)
		return err_wrap(e, "%s", CONFIG);
	name = json_string_value(json_object_get(json_object_get(json, "audit"), "file"));
	if (name && strlen(name) < 4096) {
		strcpy(file, name);
		r = 0;
	}
	return r;
}

int audit_main(int argc, char **argv)
{
	struct option_row rows[AUDIT_FILTERS + 3];
	struct asked      a = { .now_us = clock_now_us() };
	char              file[4096];
	struct err        e = { 0 };
	int               taken, r;

	build_options(rows);
	taken = options_parse(rows, argc, argv, &a, &e);
	if (taken >= 0 && taken < argc - 1)
		taken = err_set(&e, ERR_BAD_SPEC, "%.60s: one argument too many", argv[taken + 1]);
	if (taken >= 0 && a.file && !*a.file)
		taken = err_set(&e, ERR_BAD_SPEC, "--file: the name is empty");
	if (taken < 0 && taken != OPTIONS_HELP) {
		fprintf(stderr, "brig audit: %s; see brig audit --help\n", e.text);
		return STATUS_USAGE;
	}
	if (taken < 0)
		return command_print_help_or_error(taken, argv[0], rows, &help, &e);
	if (!a.file) {
		r = find_configured_file(file, &e);
		if (r < 0)
			return command_print_error(argv[0], &e, STATUS_FAILED);
		if (r > 0) {
			fputs("brig audit: " CONFIG " names no audit.file, so the audit of this host is in the journal only; type: ", stderr);
			audit_filter_print_journalctl(&a.filter, stderr);
			fputs("\n  (or name a file with --file)\n", stderr);
			return STATUS_FAILED;
		}
		a.file = file;
	}
	return print_audit_files(&a, &e) < 0 ? command_print_error(argv[0], &e, STATUS_FAILED) : STATUS_OK;
}
