#define _GNU_SOURCE
#include "tls_end.h"

#include "tap.h"
#include "tls_cert.h"

#include <fcntl.h>
#include <openssl/pem.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { UPDATES = 100 };

static void to_pem(BIO *from, char to[NET_PEM_MAX])
{
	int n = BIO_read(from, to, NET_PEM_MAX - 1);

	to[n > 0 ? n : 0] = 0;
	BIO_free(from);
}

static struct tls_authority *make_authority(void)
{
	static struct proxy_config config;
	char     *hosts[] = { "a.example" };
	EVP_PKEY *key     = tls_key_make();
	X509     *cert    = key ? tls_cert_make_ca(key, hosts, 1) : NULL;
	BIO      *cert_out = BIO_new(BIO_s_mem()), *key_out = BIO_new(BIO_s_mem());
	struct err e;

	if (!cert || !PEM_write_bio_X509(cert_out, cert) || !PEM_write_bio_PrivateKey(key_out, key, NULL, NULL, 0, NULL, NULL))
		abort();
	to_pem(cert_out, config.ca_cert);
	to_pem(key_out, config.ca_key);
	X509_free(cert);
	EVP_PKEY_free(key);
	return tls_authority_create(&config, &e);
}

static bool has_more(int fd)
{
	return poll(&(struct pollfd){ fd, POLLIN, 0 }, 1, 0) == 1;
}

/* How many updates the socket took. */
static int send_updates(SSL *client)
{
	int n = 0;

	while (n < UPDATES && SSL_key_update(client, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 && SSL_do_handshake(client) == 1)
		n++;
	return n;
}

int main(void)
{
	struct tls_authority *a   = make_authority();
	SSL_CTX              *ctx = SSL_CTX_new(TLS_client_method());
	SSL                  *client = SSL_new(ctx);
	struct tls_end       *server;
	int                   pair[2], calls = 0;
	char                  text[64];
	size_t                moved = 0;
	enum tls_outcome      outcome = TLS_WANT_READ;

	if (!a || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return EXIT_FAILURE;
	SSL_set_fd(client, pair[1]);
	server = tls_end_serve(a, pair[0], "a.example", NULL, 0);
	for (int i = 0; i < 20 && !(SSL_connect(client) == 1 && tls_end_is_ready(server)); i++)
		(void)tls_end_read(server, text, sizeof text, &moved);
	tap_ok(tls_end_is_ready(server), "a client is served in the place of its host");
	tap_ok(send_updates(client) == UPDATES, "it sends very many updates of its key, and nothing else");
	(void)tls_end_read(server, text, sizeof text, &moved);
	tap_ok(has_more(pair[0]), "one read takes a few of them, so that other connections have their turn");
	tap_ok(SSL_write(client, "data", 4) == 4, "then data comes");
	while (outcome == TLS_WANT_READ && calls++ < 2 * UPDATES && has_more(pair[0]))
		outcome = tls_end_read(server, text, sizeof text, &moved);
	tap_ok(outcome == TLS_MOVED && moved == 4 && memcmp(text, "data", 4) == 0, "and arrives");
	tls_end_destroy(server);
	SSL_free(client);
	SSL_CTX_free(ctx);
	tls_authority_destroy(a);
	return tap_done();
}
