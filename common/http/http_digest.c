#define OPENSSL_SUPPRESS_DEPRECATED /* the one-shot SHA256() would link half of libcrypto for its providers */
#include "http_digest.h"

#include <openssl/sha.h>
#include <string.h>

void http_digest_bytes(const void *bytes, size_t len, unsigned char ret[HTTP_DIGEST_BYTES])
{
	SHA256_CTX sha;

	SHA256_Init(&sha);
	SHA256_Update(&sha, bytes, len);
	SHA256_Final(ret, &sha);
}

void http_digest_text(const char *text, unsigned char ret[HTTP_DIGEST_BYTES])
{
	http_digest_bytes(text, strlen(text), ret);
}

bool http_digests_are_equal(const unsigned char a[HTTP_DIGEST_BYTES], const unsigned char b[HTTP_DIGEST_BYTES])
{
	unsigned char differ = 0;

	for (size_t i = 0; i < HTTP_DIGEST_BYTES; i++)
		differ |= (unsigned char)(a[i] ^ b[i]);
	return !differ;
}
