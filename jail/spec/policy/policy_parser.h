/*
 * policy_parser.h - what the files that read a policy share. For jail/spec/policy*.c only.
 *
 * The parser walks the words of one statement. policy_take_*() read one part of it
 * and move past it. They return 0, or -1 with a message in p->e that names file and line.
 */
#pragma once
#include "policy.h"

#include "policy_floor.h"
#include "policy_words.h"

#define POLICY_GROUPS_MAX 64

struct policy_call_set {
	bool has[POLICY_CALLS];
};

struct policy_parser {
	struct policy              *policy;
	const struct policy_bundle *bundle;
	const struct policy_source *source; /* being read */
	policy_number_fn           *number;
	struct policy_floor         floor;
	bool                        begun[POLICY_SOURCES_MAX], done[POLICY_SOURCES_MAX], default_is_set;
	size_t                      groups;
	struct {
		char                   name[POLICY_WORD_MAX + 1];
		struct policy_call_set calls;
	} group[POLICY_GROUPS_MAX];
	const struct policy_words *words;
	size_t                     at; /* next word of the statement */
	struct err                *e;
};

int         policy_err(struct policy_parser *p, const char *fmt, ...) printf_like(2, 3);
const char *policy_peek_word(const struct policy_parser *p); /* NULL at the end of the statement */
const char *policy_next_word(struct policy_parser *p);
bool        policy_accept_word(struct policy_parser *p, const char *word);
bool        policy_is_keyword(const char *word);

/* policy_calls.c: names, numbers and groups of calls */
must_use int            policy_parse_calls(struct policy_parser *p, struct policy_call_set *set);
struct policy_call_set *policy_find_group(struct policy_parser *p, const char *name);

/* policy_condition.c: "if arg0 in A B and arg1 ...", "else errno X", the end */
must_use int policy_parse_condition(struct policy_parser *p, struct policy_clause *ret);
must_use int policy_parse_errno(struct policy_parser *p, int *ret);
must_use int policy_parse_else(struct policy_parser *p, int *ret);
must_use int policy_expect_end(struct policy_parser *p);
