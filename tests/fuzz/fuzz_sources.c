/* fuzz_sources.c - any bytes as a file of apt, NUL, what apt prints: only whole lines of ours go on, no host is shown */
#include "fuzz.h"
#include "sources.h"

#define SUITE "bookworm"
#define HEAD  "deb [signed-by=" SOURCES_KEYRING "] "

static size_t count_words(const char *text, size_t n)
{
	size_t words = 0;

	for (size_t i = 0; i < n; i++)
		words += text[i] != ' ' && text[i] != '\t' && (i == 0 || text[i - 1] == ' ' || text[i - 1] == '\t');
	return words;
}

/* "deb [signed-by=...] URI SUITE main", and nothing that apt would read as more. */
static void must_be_our_line(const char *line)
{
	size_t n = strcspn(line, "\n"), head = strlen(HEAD);

	must_about(line, line[n] == '\n' && begins_with(line, HEAD));
	must_about(line, count_words(line + head, n - head) == 3 && n > 5 && strncmp(line + n - 5, " main", 5) == 0);
	must_about(line, !memchr(line + head, '[', n - head) && memchr(line + head, ':', n - head));
}

static void must_read_the_same(const struct sources *s)
{
	scoped_sources again = { 0 };
	struct err     e     = { 0 };

	if (sources_add_list(&again, s->lines, SUITE, &e) < 0)
		return; /* too many, as before */
	must_about(s->lines, again.len == s->len && strcmp(again.lines, s->lines) == 0 && again.n_hosts == s->n_hosts);
}

static void must_hide(const struct sources *s, char *said)
{
	size_t before = strlen(said);

	sources_hide_hosts(s, said);
	must_about(said, strlen(said) <= before);
	must_about(said, !strstr(said, "[IP:"));
	for (const char *at = said; (at = strstr(at, "://")); at += 3)
		must_about(said, !at[3] || strchr("/ \t\n'\"", at[3]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool           deb822 = size && *data == 'T'; /* "Types: deb" */
	char          *text = take_text(&data, &size), *said = take_text(&data, &size);
	scoped_sources s = { 0 };
	struct err     e = { 0 };

	if ((deb822 ? sources_add_deb822(&s, text, SUITE, &e) : sources_add_list(&s, text, SUITE, &e)) < 0)
		must_say_why(&e);
	must(s.lines ? strlen(s.lines) == s.len : s.len == 0);
	for (const char *line = s.lines; line && *line; line = strchr(line, '\n') + 1)
		must_be_our_line(line);
	if (s.lines)
		must_read_the_same(&s);
	must_hide(&s, said);
	free(text);
	free(said);
	return 0;
}
