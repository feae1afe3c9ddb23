#include "digest.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <unistd.h>

static int err_digest(struct err *e)
{
	return err_set(e, ERR_BROKEN, "libcrypto cannot do SHA-256");
}

int digest_init(struct digest *d, struct err *e)
{
	d->state = EVP_MD_CTX_new();
	if (!d->state || EVP_DigestInit_ex(d->state, EVP_sha256(), NULL) != 1)
		return err_digest(e);
	return 0;
}

int digest_add(struct digest *d, const void *bytes, size_t len, struct err *e)
{
	return EVP_DigestUpdate(d->state, bytes, len) == 1 ? 0 : err_digest(e);
}

int digest_finish(struct digest *d, char hex[DIGEST_HEX + 1], struct err *e)
{
	unsigned char raw[EVP_MAX_MD_SIZE];
	unsigned      n;

	if (EVP_DigestFinal_ex(d->state, raw, &n) != 1 || n * 2 != DIGEST_HEX)
		return err_digest(e);
	for (unsigned i = 0; i < n; i++)
		snprintf(hex + 2 * i, 3, "%02x", raw[i]);
	return 0;
}

void digest_done(struct digest *d)
{
	EVP_MD_CTX_free(d->state);
	d->state = NULL;
}

int digest_compute_of_bytes(const void *bytes, size_t len, char hex[DIGEST_HEX + 1], struct err *e)
{
	scoped_digest d = { 0 };

	if (digest_init(&d, e) < 0 || digest_add(&d, bytes, len, e) < 0)
		return -1;
	return digest_finish(&d, hex, e);
}

int digest_compute_of_fd(int fd, const char *path, uint64_t *size, char hex[DIGEST_HEX + 1], struct err *e)
{
	scoped_digest d     = { 0 };
	uint64_t      total = 0;
	char          block[64 * 1024];
	ssize_t       n;

	if (digest_init(&d, e) < 0)
		return -1;
	while ((n = read(fd, block, sizeof block)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, "read %s", path);
		if (digest_add(&d, block, (size_t)n, e) < 0)
			return -1;
		total += (uint64_t)n;
	}
	*size = total;
	return digest_finish(&d, hex, e);
}
