/*
 * fuzz_texts.h - any bytes as the texts of a policy.
 *
 * NUL ends a text: the policy itself, then what it may include as "a" and "b",
 * then the profile's own lines. Every other name is the policy itself again, but
 * for "none", which is missing.
 */
#pragma once
#include "fuzz.h"
#include "policy.h"

struct fuzz_texts {
	char *main, *a, *b, *lines;
};

static inline int fuzz_text_read(void *context, const char *name, char **text, size_t *len, struct err *e)
{
	const struct fuzz_texts *t    = context;
	const char              *from = strcmp(name, "a") == 0 ? t->a : strcmp(name, "b") == 0 ? t->b : t->main;

	if (strcmp(name, "none") == 0)
		return err_set(e, ERR_MISSING, "no policy %s.policy", name);
	*text = strdup(from);
	*len  = strlen(from);
	must(*text);
	return 0;
}

/* As the profile has them: one text a line. NULL when there are none, or when they are no JSON text. */
static inline json_t *fuzz_extend(const char *lines)
{
	json_t *list = *lines ? json_array() : NULL;

	for (size_t n; *lines; lines += n + (lines[n] == '\n')) {
		n = strcspn(lines, "\n");
		json_array_append_new(list, text_is_utf8(lines, n) ? json_stringn(lines, n) : json_string("?"));
	}
	return list;
}

static inline struct fuzz_texts fuzz_texts_take(const uint8_t *data, size_t size)
{
	struct fuzz_texts t;

	t.main  = take_text(&data, &size);
	t.a     = take_text(&data, &size);
	t.b     = take_text(&data, &size);
	t.lines = take_text(&data, &size);
	return t;
}

static inline void fuzz_texts_done(struct fuzz_texts *t)
{
	free(t->main);
	free(t->a);
	free(t->b);
	free(t->lines);
}

/* A refusal names file and line: "fuzz.policy:3: ..." or "policy_extend:1: ...". */
static inline void must_name_line(const struct err *e)
{
	must_say_why(e);
	must_about(e->text, strstr(e->text, ".policy:") || strstr(e->text, POLICY_EXTEND ":"));
}

static inline bool fuzz_policy_parse(struct policy *ret, const struct fuzz_texts *t, policy_number_fn *number)
{
	scoped_policy_bundle b      = { 0 };
	struct err           e      = { 0 };
	json_t              *extend = fuzz_extend(t->lines);
	bool                 ok     = policy_bundle_build(&b, "fuzz", extend, fuzz_text_read, (void *)t, &e) == 0;

	must(!ok || (b.n > 0 && b.n <= POLICY_SOURCES_MAX && b.key));
	ok = ok && policy_parse(ret, &b, number, &e) == 0;
	if (!ok)
		must_name_line(&e);
	json_decref(extend);
	return ok;
}
