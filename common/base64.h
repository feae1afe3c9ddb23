/* base64.h - base64 with padding (RFC 4648); only the canonical form is decoded. Pure. */
#pragma once
#include "defs.h"

/* malloc'ed, NUL-terminated; NULL when memory is short. */
char *base64_encode(const void *bytes, size_t len);
/* malloc'ed, NUL-terminated. NULL: not canonical base64 (a blank, missing padding, unused bits that are not zero), or memory is short. */
char *base64_decode(const char *text, size_t len, size_t *ret_len);
int   base64_digit(char c); /* its value, or -1 */
