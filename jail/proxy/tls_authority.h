/*
 * tls_authority.h - the certificates that brig-proxy shows, and the CA certificates that it trusts
 *
 * Programs are shown certificates for single hosts, signed by the CA of the configuration. Servers are checked with the
 * CA certificates that this host trusts. A proxy has one authority.
 */
#pragma once
#include "proxy_protocol.h"

#include <openssl/ssl.h>

struct tls_authority;
/* Reads the CA certificates of this host, so call it before proxy_confine(). NULL: see e. */
struct tls_authority *tls_authority_create(const struct proxy_config *config, struct err *e);
void                  tls_authority_destroy(struct tls_authority *a);

/* For a connection of a program, served in the place of host; for one to the server host, which is checked. The caller
 * frees; NULL: no memory. */
must_use SSL *tls_authority_make_server_ssl(struct tls_authority *a, const char *host);
must_use SSL *tls_authority_make_client_ssl(struct tls_authority *a, const char *host);
