#define _GNU_SOURCE
#include "tls_authority.h"

#include "ca_bundle.h"
#include "tls_cert.h"
#include "tls_error.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <arpa/inet.h>
#include <string.h>
#include <time.h>

enum { LEAVES_MAX = 32 };

/* The certificate for one host. It is used for half of its lifetime; then a new one is made. */
struct leaf {
	char   host[NET_HOST_MAX];
	X509  *cert;
	time_t made;
};

struct tls_authority {
	SSL_CTX          *server, *client;
	struct tls_issuer issuer;
	EVP_PKEY         *key; /* shared by all leaves */
	struct leaf       leaf[LEAVES_MAX];
	unsigned          next; /* which leaf is replaced next */
};

/* --- both contexts --- */

static SSL_CTX *make_ssl_context(const SSL_METHOD *method)
{
	SSL_CTX *c = SSL_CTX_new(method);

	if (!c || !SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION)) {
		SSL_CTX_free(c);
		return NULL;
	}
	SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION |
				       SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				    SSL_MODE_RELEASE_BUFFERS);
	/* one read would take key updates for as long as they come, and all runs would wait */
	SSL_CTX_clear_mode(c, SSL_MODE_AUTO_RETRY);
	SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
	return c;
}

/* A client that offers protocols must offer one of these: brig-proxy reads no other. */
static int select_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *in,
		       unsigned in_len, void *context)
{
	static const char *const ours[] = { "http/1.1", "http/1.0" };

	(void)ssl, (void)context;
	for (size_t o = 0; o < ARRAY_LEN(ours); o++)
		for (unsigned i = 0; i < in_len; i += 1u + in[i]) {
			*out     = in + i + 1;
			*out_len = in[i];
			if (in[i] == strlen(ours[o]) && in_len - i > in[i] && memcmp(*out, ours[o], in[i]) == 0)
				return SSL_TLSEXT_ERR_OK;
		}
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* The file with all of them is read whole, before proxy_confine(). */
static bool load_ca_certificates(SSL_CTX *c)
{
	for (const char *const *path = ca_bundles; *path; path++)
		if (SSL_CTX_load_verify_file(c, *path))
			return true;
	/* OpenSSL then reads single certificates when it needs them (confine.c allows it) */
	return SSL_CTX_set_default_verify_paths(c) == 1;
}

static SSL_CTX *make_client_context(void)
{
	static const unsigned char protocols[] = "\010http/1.1";
	SSL_CTX                   *c           = make_ssl_context(TLS_client_method());

	if (!c || !load_ca_certificates(c) || SSL_CTX_set_alpn_protos(c, protocols, sizeof protocols - 1) != 0) {
		SSL_CTX_free(c);
		return NULL;
	}
	SSL_CTX_set_verify(c, SSL_VERIFY_PEER, NULL);
	return c;
}

/* --- the CA --- */

/* Without this, OpenSSL would ask at a terminal for the password of an encrypted key. */
static int refuse_password(char *buf, int size, int is_write, void *context)
{
	(void)buf, (void)size, (void)is_write, (void)context;
	return -1;
}

static const char *load_authority(struct tls_authority *a, const struct proxy_config *config)
{
	BIO *cert = BIO_new_mem_buf(config->ca_cert, -1), *key = BIO_new_mem_buf(config->ca_key, -1);

	a->issuer.cert = cert ? PEM_read_bio_X509(cert, NULL, refuse_password, NULL) : NULL;
	a->issuer.key  = key ? PEM_read_bio_PrivateKey(key, NULL, refuse_password, NULL) : NULL;
	BIO_free(cert);
	BIO_free(key);
	if (!a->issuer.cert || !a->issuer.key || X509_check_private_key(a->issuer.cert, a->issuer.key) != 1)
		return "the CA of the configuration is of no use";
	a->key    = tls_key_make();
	a->server = make_ssl_context(TLS_server_method());
	if (!a->key || !a->server)
		return "OpenSSL makes no server";
	SSL_CTX_set_num_tickets(a->server, 0);
	SSL_CTX_set_alpn_select_cb(a->server, select_alpn, NULL);
	a->client = make_client_context();
	return a->client ? NULL : "the CA certificates of this host cannot be read";
}

struct tls_authority *tls_authority_create(const struct proxy_config *config, struct err *e)
{
	struct tls_authority *a   = calloc(1, sizeof *a);
	const char           *why = a ? load_authority(a, config) : "no memory";

	ERR_clear_error();
	if (!why)
		return a;
	err_set(e, ERR_SETUP, "TLS: %s", why);
	tls_authority_destroy(a);
	return NULL;
}

void tls_authority_destroy(struct tls_authority *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < LEAVES_MAX; i++)
		X509_free(a->leaf[i].cert);
	SSL_CTX_free(a->server);
	SSL_CTX_free(a->client);
	X509_free(a->issuer.cert);
	EVP_PKEY_free(a->issuer.key);
	EVP_PKEY_free(a->key);
	free(a);
}

/* --- leaves --- */

static X509 *find_or_make_leaf_cert(struct tls_authority *a, const char *host)
{
	time_t       now = time(NULL);
	struct leaf *leaf;

	for (size_t i = 0; i < LEAVES_MAX; i++) {
		leaf = &a->leaf[i];
		if (leaf->cert && strcmp(leaf->host, host) == 0 && now >= leaf->made &&
		    now - leaf->made < TLS_LEAF_SECONDS / 2)
			return leaf->cert;
	}
	leaf = &a->leaf[a->next++ % LEAVES_MAX];
	X509_free(leaf->cert);
	leaf->cert = tls_cert_make_leaf(&a->issuer, a->key, host);
	leaf->made = now;
	strcpy(leaf->host, host); /* canonical, so it fits */
	return leaf->cert;
}

/* --- connections --- */

static SSL *ssl_or_free(SSL *ssl, bool is_whole)
{
	ERR_clear_error();
	if (is_whole)
		return ssl;
	SSL_free(ssl);
	return NULL;
}

SSL *tls_authority_make_server_ssl(struct tls_authority *a, const char *host)
{
	X509 *leaf = find_or_make_leaf_cert(a, host);
	SSL  *ssl  = leaf ? SSL_new(a->server) : NULL;

	if (ssl)
		SSL_set_accept_state(ssl);
	return ssl_or_free(ssl, ssl && SSL_use_certificate(ssl, leaf) == 1 && SSL_use_PrivateKey(ssl, a->key) == 1);
}

static bool set_expected_host(SSL *ssl, const char *host)
{
	unsigned char address[16];

	if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

SSL *tls_authority_make_client_ssl(struct tls_authority *a, const char *host)
{
	SSL *ssl = SSL_new(a->client);

	if (ssl)
		SSL_set_connect_state(ssl);
	return ssl_or_free(ssl, ssl && set_expected_host(ssl, host));
}
