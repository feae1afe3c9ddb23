/*
 * tls_end.h - one end of a TLS connection that brig-proxy terminates
 *
 * Over a non-blocking socket, which stays the caller's. The handshake is done by the first reads and writes.
 */
#pragma once
#include "proxy_protocol.h"

/* The CA of the service or run, the certificates that it signed, what is trusted upstream. One for a proxy. */
struct tls_authority;
/* NULL: see e. Reads the CA certificates of this host: before confinement, or with the right to read them. */
struct tls_authority *tls_authority_create(const struct proxy_config *config, struct err *e);
void                  tls_authority_destroy(struct tls_authority *a);

struct tls_end;
/* Towards the program: brig is the server that it meant. early: bytes that were read already (the ClientHello); copied. */
struct tls_end *tls_end_serve(struct tls_authority *a, int fd, const char *host, const void *early, size_t early_len);
/* Towards the server: its certificate must be valid for host, which may be the text of an address. */
struct tls_end *tls_end_dial(struct tls_authority *a, int fd, const char *host);
void            tls_end_destroy(struct tls_end *t);

enum tls_outcome {
	TLS_MOVED,      /* *moved bytes, more than 0 */
	TLS_WANT_READ,  /* call again when the socket can be read, */
	TLS_WANT_WRITE, /* or written (also a read may want this, and the other way round) */
	TLS_END,        /* of the other side: close_notify, or end of file without it (is_cut says so) */
	TLS_FAILED,     /* see tls_end_why() */
};
/* Bytes may be waiting inside although the socket has none: read until WANT_READ. */
enum tls_outcome tls_end_read(struct tls_end *t, void *buf, size_t size, size_t *moved);
/* After a WANT the same bytes must come again (more may follow them). */
enum tls_outcome tls_end_write(struct tls_end *t, const void *bytes, size_t len, size_t *moved);
/* Says that nothing more comes: close_notify. MOVED: said. */
enum tls_outcome tls_end_finish(struct tls_end *t);

bool        tls_end_is_ready(const struct tls_end *t); /* the handshake is done */
bool        tls_end_is_cut(const struct tls_end *t);
/* The certificate of the server was not accepted: NET_REASON_UPSTREAM_TLS; other failures are the network's. */
bool        tls_end_is_untrusted(const struct tls_end *t);
const char *tls_end_why(const struct tls_end *t); /* plain text */

/* "brig-proxy --make-ca HOST...": prints the certificate and the key of a CA for these hosts alone, PEM. 0 or -1. */
must_use int tls_make_ca(char *const *hosts, int n, int out_fd, struct err *e);
