/*
 * policy_words.h - a policy file as statements, a statement as words.
 *
 * A statement begins in the first column; a line that begins with a blank
 * continues it. '#' starts a comment where a word could start. Pure: the words
 * are copied out of the bytes.
 */
#pragma once
#include "err.h"

#define POLICY_WORD_MAX  63
#define POLICY_WORDS_MAX 400

struct policy_words {
	size_t n;
	struct policy_word {
		unsigned line;
		char     text[POLICY_WORD_MAX + 1];
	} word[POLICY_WORDS_MAX];
};

struct policy_reader {
	const char *name; /* for messages; borrowed */
	const char *at, *end;
	unsigned    line;
};

struct policy_reader policy_reader_init(const char *name, const void *bytes, size_t len);

/* 1: a statement; 0: the end; -1: malformed, with file and line in e. */
must_use int policy_words_next(struct policy_reader *r, struct policy_words *ret, struct err *e);
