/* fuzz_options.c - any words, NUL between them, as the command line of brig run: said in another way they mean the same */
#include "fuzz.h"
#include "request.h"

enum { WORDS_MAX = 160 };

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static void must_be_equal(const struct request *a, const struct request *b)
{
	must(same_text(a->profile, b->profile) && same_text(a->stdin_path, b->stdin_path));
	must(a->cold == b->cold && a->private == b->private);
	must(a->json == b->json && a->verbose == b->verbose && memcmp(&a->limits, &b->limits, sizeof a->limits) == 0);
	for (size_t i = 0; i < ARRAY_LEN(a->env); i++)
		must(same_text(a->env[i], b->env[i]));
	for (size_t i = 0; i < ARRAY_LEN(a->shown); i++)
		must(same_text(a->shown[i], b->shown[i]));
}

struct line {
	int    argc;
	char **argv; /* its own words */
};

static void say(struct line *line, const char *option, const char *value)
{
	size_t len  = strlen(option) + strlen(value) + 4;
	char  *word = malloc(len);

	must(word && line->argc < WORDS_MAX);
	snprintf(word, len, "--%s%s%s", option, *value ? "=" : "", value);
	line->argv[line->argc++] = word;
}

/* Every option as one word, --name=value; the value may be empty. */
static void say_value(struct line *line, const char *option, const char *value)
{
	if (!value)
		return;
	say(line, option, *value ? value : "");
	if (!*value)
		line->argv[line->argc - 1] = strcat(realloc(line->argv[line->argc - 1], strlen(option) + 4), "=");
}

static void must_mean_the_same(const struct request *r)
{
	struct option_row rows[REQUEST_OPTIONS_MAX];
	struct line       line = { 1, calloc(WORDS_MAX + 1, sizeof *line.argv) };
	struct request    again;
	struct err        e = { 0 };
	char              text[32];

	must(line.argv);
	say_value(&line, "profile", r->profile);
	for (const struct field *f = limits_fields; f->name; f++) {
		field_print_text(f, limits_value(&r->limits, f), text, sizeof text);
		say_value(&line, limits_option_name(f->name), limits_value(&r->limits, f) == FIELD_UNSET ? NULL : text);
	}
	for (size_t i = 0; r->env[i]; i++)
		say_value(&line, "env", r->env[i]);
	for (size_t i = 0; r->shown[i]; i++)
		say_value(&line, "ro", r->shown[i]);
	say_value(&line, "stdin", r->stdin_path);
	if (r->json)
		say(&line, "json", "");
	if (r->cold)
		say(&line, "cold", "");
	if (r->private)
		say(&line, "private", "");
	if (r->verbose)
		say(&line, "verbose", "");
	request_init(&again, BY_RUN);
	request_options(BY_ANY, rows);
	must_about(e.text, options_parse(rows, line.argc, line.argv, &again, &e) == line.argc - 1);
	must_be_equal(r, &again);
	request_done(&again);
	for (int i = 1; i < line.argc; i++)
		free(line.argv[i]);
	free(line.argv);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct option_row rows[REQUEST_OPTIONS_MAX];
	char             *words[WORDS_MAX + 1] = { NULL };
	int               argc                 = 1, taken;
	struct request    r;
	struct err        e = { 0 };

	while (size && argc < WORDS_MAX)
		words[argc++] = take_text(&data, &size);
	request_init(&r, BY_RUN);
	request_options(BY_ANY, rows);
	taken = options_parse(rows, argc, words, &r, &e);
	must(taken >= OPTIONS_HELP && taken < argc);
	if (taken == OPTIONS_FAILED) {
		must_say_why(&e);
		must_about(e.text, e.text[0] == '-'); /* which option */
	} else if (taken >= 0) {
		must_mean_the_same(&r);
	}
	request_done(&r);
	for (int i = 1; i < argc; i++)
		free(words[i]);
	return 0;
}
