/*
 * tls_end.h - one end of a TLS connection that brig-proxy terminates
 *
 * TLS 1.2 or newer, HTTP/1.1 inside (ALPN), no renegotiation, no session that outlives its connection. Over a
 * non-blocking socket, which stays the caller's. The handshake is done by the first reads and writes.
 */
#pragma once
#include "tls_authority.h"

struct tls_end;
/* Towards the program, in the place of the server host. early: bytes that were read already (the ClientHello); copied.
 * NULL: no memory. */
struct tls_end *tls_end_serve(struct tls_authority *a, int fd, const char *host, const void *early, size_t early_len);
/* Towards the server, whose certificate must be valid for host, a name or the text of an address; no data is sent
 * before that is checked. */
struct tls_end *tls_end_dial(struct tls_authority *a, int fd, const char *host);
void            tls_end_destroy(struct tls_end *t);

enum tls_outcome {
	TLS_MOVED,      /* *moved bytes, more than 0 */
	TLS_WANT_READ,  /* call again when the socket can be read, */
	TLS_WANT_WRITE, /* or written (also a read may want this, and the other way round) */
	TLS_END,        /* of the other side: close_notify, or end of file without it (then is_cut) */
	TLS_FAILED,     /* and so does every later call; a write that failed leaves what can still be read */
};
/* Bytes may be waiting inside although the socket has none: read until WANT_READ. */
enum tls_outcome tls_end_read(struct tls_end *t, void *buf, size_t size, size_t *moved);
/* After a WANT the same bytes must come again (more may follow them). */
enum tls_outcome tls_end_write(struct tls_end *t, const void *bytes, size_t len, size_t *moved);
/* Sends close_notify: nothing more comes from us. MOVED: it was sent, or there is nothing to end. */
enum tls_outcome tls_end_finish(struct tls_end *t);

bool tls_end_is_ready(const struct tls_end *t); /* the handshake is done */
/* The peer ended without close_notify: its last bytes may be missing, perhaps because an attacker cut the connection.
 */
bool tls_end_is_cut(const struct tls_end *t);
/* The certificate of the server was not accepted: NET_REASON_UPSTREAM_TLS; other failures are the network's. */
bool tls_end_is_untrusted(const struct tls_end *t);
