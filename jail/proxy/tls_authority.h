/*
 * tls_authority.h - in whose name brig-proxy speaks TLS, and whom it believes
 *
 * Towards programs: certificates for single names, signed by the CA of the configuration. Towards servers: the CA certificates that
 * this host trusts. One for a proxy.
 */
#pragma once
#include "proxy_protocol.h"

#include <openssl/ssl.h>

struct tls_authority;
/* Reads the CA certificates of this host: before confinement. NULL: see e. */
struct tls_authority *tls_authority_create(const struct proxy_config *config, struct err *e);
void                  tls_authority_destroy(struct tls_authority *a);

/* A connection that is served as host, or that is to host and checks it. The caller frees; NULL: no memory. */
must_use SSL *tls_authority_serve(struct tls_authority *a, const char *host);
must_use SSL *tls_authority_dial(struct tls_authority *a, const char *host);
