#define _GNU_SOURCE
#include "tls_end.h"

#include "buffer.h"
#include "tls_error.h"


#include <errno.h>
#include <sys/socket.h>

struct tls_end {
	SSL          *ssl;
	BIO_METHOD   *method;
	int           fd;
	struct buffer early;      /* bytes to read before those of the socket */
	bool          is_at_end;  /* the socket is at end of file */
	bool          is_over;    /* nothing more can be read */
	bool          is_cut;     /* is_over, without close_notify */
	bool          is_deaf;    /* the socket takes nothing more; what came before may still be read */
	bool          is_finished, has_failed, is_untrusted;
};

/* --- a BIO over the socket, which first gives the early bytes --- */

static int bio_read(BIO *bio, char *buf, int size)
{
	struct tls_end *t = BIO_get_data(bio);
	size_t          early = buffer_left(&t->early);
	ssize_t         n;

	BIO_clear_retry_flags(bio);
	if (size <= 0)
		return 0;
	if (early) {
		early = early < (size_t)size ? early : (size_t)size;
		memcpy(buf, buffer_at(&t->early), early);
		buffer_take(&t->early, early);
		if (buffer_left(&t->early) == 0)
			buffer_free(&t->early);
		return (int)early;
	}
	n = recv(t->fd, buf, (size_t)size, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_read(bio);
	t->is_at_end |= n == 0;
	return (int)n;
}

static int bio_write(BIO *bio, const char *bytes, int len)
{
	struct tls_end *t = BIO_get_data(bio);
	ssize_t         n = send(t->fd, bytes, (size_t)len, MSG_NOSIGNAL);

	BIO_clear_retry_flags(bio);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_write(bio);
	else
		t->is_deaf |= n < 0;
	return (int)n;
}

/* BIO_CTRL_EOF gets 0: OpenSSL takes end of file for fatal, and would send nothing more to a peer that has only shut
 * down its sending side. */
static long bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
	(void)bio, (void)number, (void)pointer;
	return command == BIO_CTRL_FLUSH;
}

static BIO *make_socket_bio(struct tls_end *t)
{
	BIO *bio;

	t->method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "a socket of brig-proxy");
	if (!t->method || !BIO_meth_set_read(t->method, bio_read) || !BIO_meth_set_write(t->method, bio_write) ||
	    !BIO_meth_set_ctrl(t->method, bio_ctrl))
		return NULL;
	bio = BIO_new(t->method);
	if (bio) {
		BIO_set_data(bio, t);
		BIO_set_init(bio, 1);
	}
	return bio;
}

/* --- from the beginning to the end --- */

/* Takes ownership of ssl. */
static struct tls_end *tls_end_create(SSL *ssl, int fd)
{
	struct tls_end *t   = ssl ? calloc(1, sizeof *t) : NULL;
	BIO            *bio = t ? make_socket_bio(t) : NULL;

	if (!t) {
		SSL_free(ssl);
		return NULL;
	}
	t->ssl = ssl;
	t->fd  = fd;
	if (bio) {
		SSL_set_bio(ssl, bio, bio);
		return t;
	}
	tls_end_destroy(t);
	return NULL;
}

struct tls_end *tls_end_serve(struct tls_authority *a, int fd, const char *host, const void *early, size_t early_len)
{
	struct tls_end *t = tls_end_create(tls_authority_make_server_ssl(a, host), fd);

	if (t && early_len && !buffer_make(&t->early, early_len)) {
		tls_end_destroy(t);
		return NULL;
	}
	if (t && early_len) {
		memcpy(t->early.at, early, early_len);
		t->early.len = early_len;
	}
	return t;
}

struct tls_end *tls_end_dial(struct tls_authority *a, int fd, const char *host)
{
	return tls_end_create(tls_authority_make_client_ssl(a, host), fd);
}

void tls_end_destroy(struct tls_end *t)
{
	if (!t)
		return;
	SSL_free(t->ssl);
	BIO_meth_free(t->method);
	buffer_free(&t->early);
	free(t);
}

/* --- bytes --- */

/* The outcome of an OpenSSL call that moved nothing. Empties the error queue: the next call would take an old error for
 * its own. */
static enum tls_outcome ssl_outcome(struct tls_end *t, int r, bool is_read)
{
	int error = SSL_get_error(t->ssl, r);

	ERR_clear_error();
	switch (error) {
	case SSL_ERROR_WANT_READ:
		return TLS_WANT_READ;
	case SSL_ERROR_WANT_WRITE:
		return TLS_WANT_WRITE;
	case SSL_ERROR_ZERO_RETURN:
		t->is_over = true;
		return TLS_END;
	default:
		if (!is_read || !t->is_at_end || !SSL_is_init_finished(t->ssl)) {
			t->has_failed   = true;
			t->is_untrusted = !SSL_is_init_finished(t->ssl) && !SSL_is_server(t->ssl) &&
					  SSL_get_verify_result(t->ssl) != X509_V_OK;
			return TLS_FAILED;
		}
		t->is_over = t->is_cut = true;
		return TLS_END;
	}
}

enum tls_outcome tls_end_read(struct tls_end *t, void *buf, size_t size, size_t *moved)
{
	int r;

	if (t->is_over || t->has_failed)
		return t->has_failed ? TLS_FAILED : TLS_END;
	ERR_clear_error();
	r = SSL_read_ex(t->ssl, buf, size, moved);
	return r > 0 ? TLS_MOVED : ssl_outcome(t, r, true);
}

enum tls_outcome tls_end_write(struct tls_end *t, const void *bytes, size_t len, size_t *moved)
{
	int r;

	if (t->has_failed || t->is_deaf)
		return TLS_FAILED;
	ERR_clear_error();
	r = SSL_write_ex(t->ssl, bytes, len, moved);
	if (r <= 0 && t->is_deaf && SSL_is_init_finished(t->ssl)) {
		ERR_clear_error();
		return TLS_FAILED;
	}
	return r > 0 ? TLS_MOVED : ssl_outcome(t, r, false);
}

/* Calls SSL_shutdown() once: a second call would wait for the peer's close_notify. */
enum tls_outcome tls_end_finish(struct tls_end *t)
{
	int r;

	if (t->is_finished || t->has_failed || t->is_deaf || !SSL_is_init_finished(t->ssl))
		return TLS_MOVED;
	ERR_clear_error();
	r = SSL_shutdown(t->ssl);
	if (r < 0)
		return ssl_outcome(t, r, false);
	t->is_finished = true;
	return TLS_MOVED;
}

bool tls_end_is_ready(const struct tls_end *t)
{
	return SSL_is_init_finished(t->ssl);
}

bool tls_end_is_cut(const struct tls_end *t)
{
	return t->is_cut;
}

bool tls_end_is_untrusted(const struct tls_end *t)
{
	return t->is_untrusted;
}
