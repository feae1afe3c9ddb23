/* tls_none.c - tls_end.h of a proxy that ends no TLS: what would have to be read inside is refused */
#include "tls_end.h"

struct tls_authority *tls_authority_create(const struct proxy_config *config, struct err *e)
{
	(void)config;
	err_set(e, ERR_SETUP, "this brig-proxy cannot end TLS: methods, paths and secrets need that");
	return NULL;
}

void tls_authority_destroy(struct tls_authority *a)
{
	(void)a;
}

struct tls_end *tls_end_serve(struct tls_authority *a, int fd, const char *host, const void *early, size_t early_len)
{
	(void)a, (void)fd, (void)host, (void)early, (void)early_len;
	return NULL;
}

struct tls_end *tls_end_dial(struct tls_authority *a, int fd, const char *host)
{
	(void)a, (void)fd, (void)host;
	return NULL;
}

void tls_end_destroy(struct tls_end *t)
{
	(void)t;
}

enum tls_outcome tls_end_read(struct tls_end *t, void *buf, size_t size, size_t *moved)
{
	(void)t, (void)buf, (void)size, (void)moved;
	return TLS_FAILED;
}

enum tls_outcome tls_end_write(struct tls_end *t, const void *bytes, size_t len, size_t *moved)
{
	(void)t, (void)bytes, (void)len, (void)moved;
	return TLS_FAILED;
}

enum tls_outcome tls_end_finish(struct tls_end *t)
{
	(void)t;
	return TLS_FAILED;
}

bool tls_end_is_untrusted(const struct tls_end *t)
{
	(void)t;
	return false;
}

int tls_make_ca(char *const *hosts, int n, int out_fd, struct err *e)
{
	(void)hosts, (void)n, (void)out_fd;
	return err_set(e, ERR_SETUP, "this brig-proxy cannot end TLS");
}
