/*
 * tls_cert.h - the keys and certificates that brig makes: EC P-256, SHA-256
 *
 * Functions that return a pointer return NULL if memory or randomness is missing; the caller frees the result.
 */
#pragma once
#include "err.h"

#include <openssl/x509.h>

struct tls_issuer {
	X509     *cert;
	EVP_PKEY *key;
};

EVP_PKEY *tls_key_make(void);
/*
 * A CA that can sign for these hosts and no other (RFC 5280, 4.2.1.10): "name", "*.name", "*" (every name), addresses.
 * A name also permits all names below it: name constraints cannot permit less.
 */
X509 *tls_cert_make_ca(EVP_PKEY *key, char *const *hosts, int n);
/* For a server, valid for one name or address, for TLS_LEAF_SECONDS. */
enum { TLS_LEAF_SECONDS = 24 * 60 * 60 };
X509 *tls_cert_make_leaf(const struct tls_issuer *issuer, EVP_PKEY *key, const char *host);

/* "brig-proxy --make-ca HOST...": prints the certificate and the key of a CA for these hosts alone, PEM. 0 or -1. */
must_use int tls_make_ca(char *const *hosts, int n, int out_fd, struct err *e);
