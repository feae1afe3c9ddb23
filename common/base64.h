/* base64.h - bytes as a text of 64 characters, and back; only the canonical form is taken. Pure. */
#pragma once
#include "defs.h"

/* malloc'ed, with a NUL behind them; NULL when memory is short. */
char *base64_encode(const void *bytes, size_t len);
/* The same, of the bytes. NULL: it is damaged, as by a blank, padding that lacks, or bits that stand for nothing; or memory is short. */
char *base64_decode(const char *text, size_t len, size_t *ret_len);
