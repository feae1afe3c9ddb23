#include "policy_bundle.h"

#include "policy_floor.h"
#include "policy_value.h"
#include "policy_words.h"
#include "text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Increase it when a change makes the same text compile to another filter. */
#define COMPILER_VERSION 3

#if defined(__x86_64__)
#define MACHINE "x86_64"
#elif defined(__aarch64__)
#define MACHINE "aarch64"
#else
#error "name this machine: its filters must not be mistaken for another's"
#endif

void policy_bundle_done(struct policy_bundle *b)
{
	for (size_t i = 0; i < b->n; i++)
		free(b->source[i].text);
	free(b->key);
	*b = (struct policy_bundle){ 0 };
}

const struct policy_source *policy_bundle_find(const struct policy_bundle *b, const char *name)
{
	for (size_t i = 0; i < b->n; i++)
		if (!b->source[i].extends && strcmp(b->source[i].name, name) == 0)
			return &b->source[i];
	return NULL;
}

static int add_policy_file(struct policy_bundle *b, const char *name, policy_read_fn *read, void *context,
			   struct err *e)
{
	struct policy_source *s = &b->source[b->n];

	if (policy_bundle_find(b, name))
		return 0;
	if (!text_is_name(name))
		return err_set(e, ERR_BAD_SPEC, "\"%s\" is not a valid policy name; use a-z, 0-9, '-', '_', '.'", name);
	if (b->n == POLICY_SOURCES_MAX - 1) /* one is reserved for the profile's lines */
		return err_set(e, ERR_BAD_SPEC, "more than %d files", POLICY_SOURCES_MAX - 1);
	if (read(context, name, &s->text, &s->len, e) < 0)
		return -1;
	snprintf(s->name, sizeof s->name, "%s", name);
	snprintf(s->where, sizeof s->where, "%s.policy", name);
	b->n++;
	if (s->len > POLICY_SOURCE_MAX)
		return err_set(e, ERR_BAD_SPEC, "%s: %zu bytes; a policy has at most %d", s->where, s->len, POLICY_SOURCE_MAX);
	return 0;
}

static int add_included_files(struct policy_bundle *b, const struct policy_source *s, policy_read_fn *read,
			      void *context, struct err *e)
{
	struct policy_reader r = policy_reader_init(s->where, s->text, s->len);
	struct policy_words  words;
	int                  more;

	while ((more = policy_words_next(&r, &words, e)) > 0)
		if (strcmp(words.word[0].text, "include") == 0)
			for (size_t i = 1; i < words.n; i++)
				if (add_policy_file(b, words.word[i].text, read, context, e) < 0)
					return err_wrap(e, "%s:%u", s->where, words.word[i].line);
	return more;
}

static int add_profile_statements(struct policy_bundle *b, const json_t *extend, struct err *e)
{
	struct policy_source *s = &b->source[b->n];
	size_t                i;
	json_t               *item;

	FILE *out = open_memstream(&s->text, &s->len);
	if (!out)
		return err_sys(e, "gather " POLICY_EXTEND);
	*s->name = 0;
	snprintf(s->where, sizeof s->where, POLICY_EXTEND);
	s->extends = true;
	b->n++;
	int refused = 0;
	json_array_foreach(extend, i, item)
	{
		const char *line = json_string_value(item);

		if (refused == 0 && (!line || !*line || text_has_control(line) || *line == ' '))
			refused = err_set(e, ERR_BAD_SPEC, POLICY_EXTEND ":%zu: expected one line of text, as in a policy file", i + 1);
		if (refused == 0)
			fprintf(out, "%s\n", line);
	}
	if (fclose(out) != 0)
		return err_sys(e, "gather " POLICY_EXTEND);
	if (refused == 0 && s->len > POLICY_SOURCE_MAX)
		return err_set(e, ERR_BAD_SPEC, POLICY_EXTEND ": %zu bytes; at most %d", s->len, POLICY_SOURCE_MAX);
	return refused;
}

/* Each text is preceded by its length, so that different texts never make the same key. */
static int build_key(struct policy_bundle *b, struct err *e)
{
	FILE *out = open_memstream(&b->key, &b->key_len);

	if (!out)
		return err_sys(e, "gather a policy");
	fprintf(out, "brig-policy %d brig %s " MACHINE " tables %016" PRIx64 "\n", COMPILER_VERSION, BRIG_VERSION,
		policy_value_digest(policy_floor_digest()));
	for (size_t i = 0; i < b->n; i++) {
		fprintf(out, "%s %zu\n", b->source[i].where, b->source[i].len);
		fwrite(b->source[i].text, 1, b->source[i].len, out);
	}
	return fclose(out) == 0 ? 0 : err_sys(e, "gather a policy");
}

int policy_bundle_build(struct policy_bundle *ret, const char *name, const json_t *extend, policy_read_fn *read, void *context,
			struct err *e)
{
	scoped_policy_bundle b = { 0 };

	if (add_policy_file(&b, name, read, context, e) < 0)
		return -1;
	for (size_t i = 0; i < b.n; i++)
		if (add_included_files(&b, &b.source[i], read, context, e) < 0)
			return -1;
	if (extend && add_profile_statements(&b, extend, e) < 0)
		return -1;
	if (build_key(&b, e) < 0)
		return -1;
	*ret = b;
	b    = (struct policy_bundle){ 0 };
	return 0;
}
