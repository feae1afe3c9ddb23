/*
 * OpenSSL's old interface: EVP would link the whole library into brigd, 4 MB, or a shared one, which costs every start
 * 0.55 ms. These three functions are 24 KB (docs/history/0058).
 */
#define OPENSSL_API_COMPAT 10100
#include "code_digest.h"

#include <openssl/sha.h>

void code_compute_digest(const void *bytes, size_t len, char hex[CODE_DIGEST_HEX + 1])
{
	static const char digits[] = "0123456789abcdef";
	unsigned char     raw[SHA256_DIGEST_LENGTH];
	SHA256_CTX        sha;

	SHA256_Init(&sha);
	SHA256_Update(&sha, bytes, len);
	SHA256_Final(raw, &sha);
	for (size_t i = 0; i < sizeof raw; i++) {
		hex[2 * i]     = digits[raw[i] >> 4];
		hex[2 * i + 1] = digits[raw[i] & 15];
	}
	hex[CODE_DIGEST_HEX] = 0;
}
