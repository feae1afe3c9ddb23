#define _GNU_SOURCE
#include "requirements.h"

#include "file.h"
#include "trust.h"
#include "text.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS     " \t"
#define DIGITS     "0123456789"
#define LETTERS    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define NAME       LETTERS DIGITS "._-"
#define MARKER     NAME " '\"<>=!()~,"
#define HASH       "--hash=sha256:"
#define HASHES_MAX 512

static void requirement_done(struct requirement *r)
{
	free(r->name);
	free(r->version);
	free(r->marker);
	free(r->hash);
	*r = (struct requirement){ 0 };
}

void requirements_done(struct requirements *r)
{
	for (size_t i = 0; i < r->n; i++)
		requirement_done(&r->row[i]);
	free(r->row);
	free(r->text);
	*r = (struct requirements){ 0 };
}

char *requirement_name(const char *text, size_t len)
{
	char  *name = malloc(len + 1);
	size_t n    = 0;

	for (size_t i = 0; name && i < len; i++) {
		bool between = strchr("._-", text[i]);

		if (!between || n == 0 || name[n - 1] != '-')
			name[n++] = between ? '-' : (char)tolower((unsigned char)text[i]);
	}
	if (name)
		name[n] = 0;
	return name;
}

static int err_out_of_memory(struct err *e)
{
	return err_set(e, ERR_LIMIT, "out of memory");
}

/* --- one complete line --- */

static const char *skip_blanks(const char *at)
{
	return at + strspn(at, BLANKS);
}

/* "name[extras]": extras are ignored, because the file must list the packages that they need. */
static int parse_name(const char **at, struct requirement *r, struct err *e)
{
	size_t n = strspn(*at, NAME);

	if (**at == '-')
		return err_set(e, ERR_BAD_SPEC,
			       "%.60s: options are not taken from a file; index or wheels of the recipe says where "
			       "wheels come from",
			       *at);
	if (n == 0 || !isalnum((unsigned char)**at))
		return err_set(e, ERR_BAD_SPEC, "%.60s: no name of a package", *at);
	r->name = requirement_name(*at, n);
	*at     = skip_blanks(*at + n);
	if (**at == '[')
		*at = skip_blanks(*at + 1 + strspn(*at + 1, NAME ", "));
	if (**at == ']')
		*at = skip_blanks(*at + 1);
	return r->name ? 0 : err_out_of_memory(e);
}

static int parse_version(const char **at, struct requirement *r, struct err *e)
{
	const char *version = begins_with(*at, "==") ? skip_blanks(*at + 2) : "";
	size_t      n       = strspn(version, NAME "+!");

	if (n == 0 || version[n] == '*')
		return err_set(e, ERR_BAD_SPEC,
			       "%.60s: expected %.60s==VERSION; pip-compile --generate-hashes writes such a file",
			       r->name, r->name);
	r->version = strndup(version, n);
	*at        = skip_blanks(version + n);
	return r->version ? 0 : err_out_of_memory(e);
}

static int parse_marker(const char **at, struct requirement *r, struct err *e)
{
	const char *hash, *start;
	size_t      n;

	if (**at != ';')
		return 0;
	start = skip_blanks(*at + 1);
	hash  = strstr(start, "--hash");
	n     = hash ? (size_t)(hash - start) : strlen(start);
	*at   = start + n;
	while (n && strchr(BLANKS, start[n - 1]))
		n--;
	if (n == 0 || strspn(start, MARKER) < n)
		return err_set(e, ERR_BAD_SPEC, "%.60s: what follows its ';' is no marker", r->name);
	r->marker = strndup(start, n);
	return r->marker ? 0 : err_out_of_memory(e);
}

static int parse_hash(const char **at, struct requirement *r, struct err *e)
{
	const char *digits = *at + strlen(HASH);
	void       *more;

	if (strncmp(*at, HASH, strlen(HASH)) != 0 || strspn(digits, DIGITS "abcdefABCDEF") != DIGEST_HEX ||
	    !strchr(BLANKS, digits[DIGEST_HEX]))
		return err_set(e, ERR_BAD_SPEC, "%.60s==%.60s: %.100s: expected " HASH "... with %d digits", r->name,
			       r->version, *at, DIGEST_HEX);
	if (r->n_hashes == HASHES_MAX)
		return err_set(e, ERR_LIMIT, "%.60s==%.60s: more than %d hashes", r->name, r->version, HASHES_MAX);
	more = realloc(r->hash, (r->n_hashes + 1) * sizeof *r->hash);
	if (!more)
		return err_out_of_memory(e);
	r->hash = more;
	for (size_t i = 0; i < DIGEST_HEX; i++)
		r->hash[r->n_hashes][i] = (char)tolower((unsigned char)digits[i]);
	r->hash[r->n_hashes++][DIGEST_HEX] = 0;
	*at = skip_blanks(digits + DIGEST_HEX);
	return 0;
}

static int parse_requirement(const char *at, struct requirement *r, struct err *e)
{
	if (parse_name(&at, r, e) < 0 || parse_version(&at, r, e) < 0 || parse_marker(&at, r, e) < 0)
		return -1;
	while (*at)
		if (parse_hash(&at, r, e) < 0)
			return -1;
	if (r->n_hashes)
		return 0;
	return err_set(e, ERR_BAD_SPEC,
		       "%.60s==%.60s has no hash: add --hash=sha256:..., which `pip hash FILE.whl` prints, or let "
		       "`pip-compile --generate-hashes` write the file",
		       r->name, r->version);
}

/* --- the file --- */

static int check_not_required_twice(const struct requirements *all, const struct requirement *r, struct err *e)
{
	for (size_t i = 0; i < all->n; i++)
		if (strcmp(all->row[i].name, r->name) == 0 && !(all->row[i].marker && r->marker))
			return err_set(e, ERR_BAD_SPEC, "%.60s: line %zu has it already", r->name, all->row[i].line);
	return 0;
}

static int add_requirement(struct requirements *all, const char *text, size_t line, struct err *e)
{
	scoped(requirement_done) struct requirement r    = { .line = line };
	struct requirement                         *more = realloc(all->row, (all->n + 1) * sizeof *more);

	if (!more)
		return err_out_of_memory(e);
	all->row = more;
	if (!text_is_plain(text))
		return err_set(e, ERR_BAD_SPEC, "line %zu: has a character that cannot be shown", line);
	if (parse_requirement(text, &r, e) < 0 || check_not_required_twice(all, &r, e) < 0)
		return err_wrap(e, "line %zu", line);
	all->row[all->n++] = r;
	r                  = (struct requirement){ 0 };
	return 0;
}

/* In place, as pip does it: removes a comment, which begins the line or follows a blank; makes tabs blanks; removes
 * blanks at the end. */
static void strip_comment(char *line)
{
	size_t n;

	for (n = 0; line[n] && !(line[n] == '#' && (n == 0 || line[n - 1] == ' ')); n++)
		if (line[n] == '\t' || line[n] == '\r')
			line[n] = ' ';
	while (n && line[n - 1] == ' ')
		n--;
	line[n] = 0;
}

/* Takes a line, joined in place with the lines that continue it after a backslash; *number counts all of them. */
static char *next_joined_line(char **text, size_t *number)
{
	char *line = *text, *into = line, *part;

	while ((part = strsep(text, "\n"))) {
		size_t n;

		++*number;
		strip_comment(part);
		n = strlen(part);
		memmove(into, part, n + 1);
		if (n == 0 || into[n - 1] != '\\')
			break;
		into[n - 1] = ' ';
		into += n;
	}
	return line;
}

static int write_requirements_text(struct requirements *r, struct err *e)
{
	FILE *out = open_memstream(&r->text, &r->len);

	if (!out)
		return err_out_of_memory(e);
	for (size_t i = 0; i < r->n; i++) {
		const struct requirement *row = &r->row[i];

		fprintf(out, "%s==%s", row->name, row->version);
		if (row->marker)
			fprintf(out, " ; %s", row->marker);
		for (size_t j = 0; j < row->n_hashes; j++)
			fprintf(out, " " HASH "%s", row->hash[j]);
		fputc('\n', out);
	}
	return fclose(out) == 0 ? 0 : err_out_of_memory(e);
}

int requirements_parse(struct requirements *ret, char *text, struct err *e)
{
	scoped_requirements r      = { 0 };
	size_t              number = 0;

	while (text) {
		size_t      first = number + 1;
		const char *line  = skip_blanks(next_joined_line(&text, &number));

		if (*line && add_requirement(&r, line, first, e) < 0)
			return -1;
	}
	if (r.n == 0)
		return err_set(e, ERR_BAD_SPEC,
			       "nothing is required; write NAME==VERSION --hash=sha256:..., a line for each package");
	if (write_requirements_text(&r, e) < 0)
		return -1;
	*ret = r;
	r    = (struct requirements){ 0 };
	return 0;
}

int requirements_read(struct requirements *ret, const char *path, struct err *e)
{
	scoped_bytes b = { 0 };

	if (trust_read(path, REQUIREMENTS_MAX, &b, e) < 0)
		return -1;
	if (memchr(b.data, 0, b.len))
		return err_set(e, ERR_BAD_SPEC, "%s: no text", path);
	return requirements_parse(ret, b.data, e) < 0 ? err_wrap(e, "%s", path) : 0;
}
