#define _GNU_SOURCE
#include "sources.h"

#include "file.h"
#include "text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS    " \t"
#define FILE_MAX  MIB
/* Each URI of an entry is combined with each suite: a file of a few kilobytes could make millions of lines. */
#define LINES_MAX (64 * KIB)

/* One entry, of either style. Lists are words with blanks between. */
struct entry {
	char *types, *uris, *suites, *components, *keys, *enabled;
};

static void entry_done(struct entry *x)
{
	char **fields[] = { &x->types, &x->uris, &x->suites, &x->components, &x->keys, &x->enabled };

	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		free(*fields[i]);
	*x = (struct entry){ 0 };
}

void sources_done(struct sources *s)
{
	for (size_t i = 0; i < s->n_hosts; i++)
		free(s->hosts[i]);
	free(s->hosts);
	free(s->lines);
	*s = (struct sources){ 0 };
}

static const char *text_or_empty(const char *text)
{
	return text ? text : "";
}

/* The next word and its length; 0 when there is none. */
static size_t next_word(const char **at)
{
	*at += strspn(*at, BLANKS "\n");
	return strcspn(*at, BLANKS "\n");
}

static bool list_has_word(const char *list, const char *word)
{
	size_t n;

	for (const char *p = text_or_empty(list); (n = next_word(&p)); p += n)
		if (n == strlen(word) && strncmp(p, word, n) == 0)
			return true;
	return false;
}

/* --- which entries --- */

/* True if no key is named, or only files with Debian's names. A key written into the entry itself is not Debian's. */
static bool keys_have_debian_names(const char *keys)
{
	size_t n;

	for (const char *p = text_or_empty(keys); (n = next_word(&p)); p += n) {
		const char *slash = memrchr(p, '/', n);

		if (!slash || !begins_with(slash + 1, "debian-archive-"))
			return false;
	}
	return true;
}

static bool is_suite_or_update(const char *word, size_t n, const char *suite)
{
	static const char *const tails[] = { "", "-updates", "-security", "/updates" };
	size_t                   head    = strlen(suite);

	if (n < head || strncmp(word, suite, head) != 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(tails); i++)
		if (n - head == strlen(tails[i]) && strncmp(word + head, tails[i], n - head) == 0)
			return true;
	return false;
}

static bool is_usable_uri(const char *word, size_t n)
{
	const char *colon = memchr(word, ':', n);

	return colon && !begins_with(word, "cdrom:") && !memchr(word, '"', n) && !memchr(word, '[', n);
}

/* --- lines and hosts --- */

static int add_mirror_host(struct sources *s, const char *uri, size_t n, struct err *e)
{
	const char *host = memmem(uri, n, "://", 3);
	char      **more;
	size_t      len;

	if (!host)
		return 0;
	host += 3;
	len = strcspn(host, "/ \t\n");
	if (memchr(host, '@', len)) {
		const char *at = memchr(host, '@', len);

		len -= (size_t)(at + 1 - host);
		host = at + 1;
	}
	len = strcspn(host, ":/ \t\n") < len ? strcspn(host, ":/ \t\n") : len;
	if (len == 0)
		return 0;
	more = realloc(s->hosts, (s->n_hosts + 1) * sizeof *more);
	if (!more)
		return err_set(e, ERR_LIMIT, "out of memory");
	s->hosts            = more;
	s->hosts[s->n_hosts] = strndup(host, len);
	return s->hosts[s->n_hosts++] ? 0 : err_set(e, ERR_LIMIT, "out of memory");
}

static int add_source_line(struct sources *s, const char *uri, size_t n_uri, const char *suite, size_t n_suite,
			   struct err *e)
{
	char *line;
	int   n;

	if (s->len > LINES_MAX)
		return err_set(e, ERR_LIMIT,
			       "more than %d bytes of sources, once each address stands in a line of its own",
			       (int)LINES_MAX);
	n = asprintf(&line, "%sdeb [signed-by=" SOURCES_KEYRING "] %.*s %.*s main\n", text_or_empty(s->lines),
		     (int)n_uri,
		     uri, (int)n_suite, suite);
	if (n < 0)
		return err_set(e, ERR_LIMIT, "out of memory");
	free(s->lines);
	s->lines = line;
	s->len   = (size_t)n;
	return add_mirror_host(s, uri, n_uri, e);
}

static int add_entry_of_suite(struct sources *s, const struct entry *x, const char *suite, struct err *e)
{
	size_t n, m;

	if (!list_has_word(x->types, "deb") || !list_has_word(x->components, "main") ||
	    !keys_have_debian_names(x->keys))
		return 0;
	if (list_has_word(x->enabled, "no") || list_has_word(x->enabled, "false"))
		return 0;
	for (const char *u = text_or_empty(x->uris); (n = next_word(&u)); u += n)
		for (const char *w = text_or_empty(x->suites); (m = next_word(&w)); w += m)
			if (is_usable_uri(u, n) && is_suite_or_update(w, m, suite) &&
			    add_source_line(s, u, n, w, m, e) < 0)
				return -1;
	return 0;
}

/* --- one-line style: deb [option=value ...] URI SUITE COMPONENT... --- */

static char *next_word_copy(const char **at)
{
	size_t n    = next_word(at);
	char  *word = strndup(*at, n);

	*at += n;
	return word;
}

static void parse_list_options(const char **at, struct entry *x)
{
	const char *end, *key;

	*at += strspn(*at, BLANKS);
	end = **at == '[' ? strchr(*at, ']') : NULL;
	if (!end)
		return;
	key = strcasestr(*at, "signed-by=");
	if (key && key < end)
		x->keys = strndup(key + strlen("signed-by="), strcspn(key + strlen("signed-by="), "] \t"));
	for (char *c = x->keys; c && *c; c++)
		if (*c == ',')
			*c = ' ';
	*at = end + 1;
}

static int add_list_line(struct sources *s, const char *line, const char *suite, struct err *e)
{
	scoped(entry_done) struct entry x = { 0 };

	x.types = next_word_copy(&line);
	parse_list_options(&line, &x);
	x.uris       = next_word_copy(&line);
	x.suites     = next_word_copy(&line);
	x.components = strndup(line, strcspn(line, "#"));
	return add_entry_of_suite(s, &x, suite, e);
}

int sources_add_list(struct sources *s, const char *text, const char *suite, struct err *e)
{
	for (const char *p = text; *p;) {
		size_t n    = strcspn(p, "\n");
		char  *line = strndup(p, n);
		int    bad  = line ? add_list_line(s, line, suite, e) : err_set(e, ERR_LIMIT, "out of memory");

		free(line);
		if (bad < 0)
			return -1;
		p += n + (p[n] == '\n');
	}
	return 0;
}

/* --- deb822 style: stanzas of "Field: value", continued by lines that begin with a blank --- */

static char **find_entry_field(struct entry *x, const char *line, size_t n)
{
	const struct {
		const char *name;
		char      **at;
	} fields[] = {
		{ "Types", &x->types },           { "URIs", &x->uris },      { "Suites", &x->suites },
		{ "Components", &x->components }, { "Signed-By", &x->keys }, { "Enabled", &x->enabled },
	};

	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (strlen(fields[i].name) == n && strncasecmp(line, fields[i].name, n) == 0)
			return fields[i].at;
	return NULL;
}

static int append_field_text(char **to, const char *text, size_t n, struct err *e)
{
	char *joined;

	if (asprintf(&joined, "%s %.*s", text_or_empty(*to), (int)n, text) < 0)
		return err_set(e, ERR_LIMIT, "out of memory");
	free(*to);
	*to = joined;
	return 0;
}

/* Adds a line of a stanza; *field: the field that a continuation line belongs to. */
static int add_stanza_line(struct entry *x, char ***field, const char *line, size_t n, struct err *e)
{
	const char *colon = memchr(line, ':', n);

	if (line[0] == ' ' || line[0] == '\t')
		return *field ? append_field_text(*field, line, n, e) : 0;
	*field = colon ? find_entry_field(x, line, (size_t)(colon - line)) : NULL;
	return *field ? append_field_text(*field, colon + 1, n - (size_t)(colon + 1 - line), e) : 0;
}

int sources_add_deb822(struct sources *s, const char *text, const char *suite, struct err *e)
{
	scoped(entry_done) struct entry x     = { 0 };
	char                          **field = NULL;

	for (const char *p = text; *p;) {
		size_t n = strcspn(p, "\n");

		if (strspn(p, BLANKS) >= n) { /* the stanza ends */
			if (add_entry_of_suite(s, &x, suite, e) < 0)
				return -1;
			entry_done(&x);
			field = NULL;
		} else if (p[0] != '#' && add_stanza_line(&x, &field, p, n, e) < 0) {
			return -1;
		}
		p += n + (p[n] == '\n');
	}
	return add_entry_of_suite(s, &x, suite, e);
}

/* --- the machine's --- */

static int add_sources_file(struct sources *s, const char *path, const char *suite, struct err *e)
{
	scoped_bytes b = { 0 };

	if (file_read(AT_FDCWD, path, FILE_MAX, &b, e) < 0)
		return -1;
	if ((text_ends_in(path, ".sources") ? sources_add_deb822(s, b.data, suite, e)
					    : sources_add_list(s, b.data, suite, e)) < 0)
		return err_wrap(e, "%s", path);
	return 0;
}

static int is_sources_file_name(const struct dirent *at)
{
	return text_ends_in(at->d_name, ".list") || text_ends_in(at->d_name, ".sources");
}

static int add_machine_sources(struct sources *s, const char *suite, struct err *e)
{
	struct dirent **list = NULL;
	int             n, bad = 0;
	char            path[512];

	if (add_sources_file(s, "/etc/apt/sources.list", suite, e) < 0 && e->errnum != ENOENT)
		return -1;
	n = scandir("/etc/apt/sources.list.d", &list, is_sources_file_name, alphasort);
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof path, "/etc/apt/sources.list.d/%s", list[i]->d_name);
		if (!bad)
			bad = add_sources_file(s, path, suite, e);
		free(list[i]);
	}
	free(list);
	return bad;
}

/* --- the recipe's --- */

bool sources_line_is_plain(const char *line)
{
	scoped(entry_done) struct entry x = { 0 };

	if (strchr(line, '[')) /* options: trusted=yes is one */
		return false;
	x.types      = next_word_copy(&line);
	x.uris       = next_word_copy(&line);
	x.suites     = next_word_copy(&line);
	x.components = strdup(line);
	return x.types && strcmp(x.types, "deb") == 0 && x.uris && is_usable_uri(x.uris, strlen(x.uris)) && x.suites &&
	       x.suites[0] && list_has_word(x.components, "main");
}

int sources_load(struct sources *ret, const char *file, const char *own, const char *suite, struct err *e)
{
	scoped_sources s = { 0 };

	if ((file ? add_sources_file(&s, file, suite, e) : add_machine_sources(&s, suite, e)) < 0)
		return -1;
	if (!file && !s.len && sources_add_list(&s, own, suite, e) < 0)
		return -1;
	if (!s.len && file)
		return err_set(e, ERR_MISSING,
			       "%s has no source of Debian %s (main, signed by Debian); name a file that has one: "
			       "--sources FILE",
			       file, suite);
	if (!s.len)
		return err_set(e, ERR_MISSING,
			       "neither /etc/apt nor the recipe has a source of Debian %s (main, signed by Debian); "
			       "add one to the recipe: \"sources\": [\"deb URI %s main\"]",
			       suite, suite);
	*ret = s;
	s    = (struct sources){ 0 };
	return 0;
}

/* --- hiding host names --- */

/* Of any case. A name that is shorter than the word in its place is cut: the text never grows. */
static void hide_host_name(char *text, const char *host)
{
	size_t      n = strlen(host), m = strlen("(mirror)");
	const char *with = m > n ? "" : "(mirror)";

	m = strlen(with);
	for (char *at = n ? text : NULL; at && (at = strcasestr(at, host)); at += m) {
		memcpy(at, with, m);
		memmove(at + m, at + n, strlen(at + n) + 1);
	}
}

/* Cuts "[IP: 192.0.2.1 80]", and all between "://" and the next slash. */
static void cut_all_between(char *text, const char *from, const char *until, size_t keep)
{
	for (char *at = text; (at = strstr(at, from));) {
		char  *start = at + keep;
		size_t n     = strcspn(start, until);

		if (until[0] == ']' && start[n] == ']')
			n++;
		memmove(start, start + n, strlen(start + n) + 1);
		at = keep ? start : text; /* the text on both sides of the cut may form another one */
	}
}

void sources_hide_hosts(const struct sources *s, char *text)
{
	for (size_t i = 0; i < s->n_hosts; i++)
		hide_host_name(text, s->hosts[i]);
	cut_all_between(text, "[IP:", "]\n", 0);
	cut_all_between(text, "://", "/ \t\n'\"", 3);
}
