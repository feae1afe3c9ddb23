/*
 * http_digest.h - SHA-256 of a token: servers keep it in the token's place, and compare digests in constant time. Pure.
 */
#pragma once
#include "defs.h"

enum { HTTP_DIGEST_BYTES = 32 };

void http_digest_text(const char *text, unsigned char ret[HTTP_DIGEST_BYTES]);
void http_digest_bytes(const void *bytes, size_t len, unsigned char ret[HTTP_DIGEST_BYTES]);
bool http_digests_are_equal(const unsigned char a[HTTP_DIGEST_BYTES], const unsigned char b[HTTP_DIGEST_BYTES]);
