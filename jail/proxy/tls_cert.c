#define _GNU_SOURCE
#include "tls_cert.h"

#include "file.h"
#include "proxy_protocol.h"
#include "tls_error.h"
#include "text.h"

#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <arpa/inet.h>
#include <string.h>

/* Long for a CA: its key ends with the run or service. Certificates begin in the past, because clocks of machines
 * differ. */
enum { CA_SECONDS = 10 * 365 * 24 * 60 * 60, EARLIER_SECONDS = 60 * 60 };

EVP_PKEY *tls_key_make(void)
{
	return EVP_EC_gen("P-256");
}

/* --- names and addresses --- */

/* Returns the length of the address, 4 or 16; 0: host is a name. */
static size_t parse_address_bytes(const char *host, unsigned char bytes[16])
{
	if (inet_pton(AF_INET, host, bytes) == 1)
		return 4;
	return inet_pton(AF_INET6, host, bytes) == 1 ? 16 : 0;
}

static GENERAL_NAME *make_general_name(int kind, const void *bytes, size_t len)
{
	GENERAL_NAME *name = GENERAL_NAME_new();
	ASN1_STRING  *text = ASN1_STRING_type_new(kind == GEN_DNS ? V_ASN1_IA5STRING : V_ASN1_OCTET_STRING);

	if (!name || !text || !ASN1_STRING_set(text, bytes, (int)len)) {
		GENERAL_NAME_free(name);
		ASN1_STRING_free(text);
		return NULL;
	}
	GENERAL_NAME_set0_value(name, kind, text);
	return name;
}

/* --- what a CA can sign --- */

static bool add_subtree(STACK_OF(GENERAL_SUBTREE) * *list, int kind, const void *bytes, size_t len)
{
	GENERAL_SUBTREE *tree = GENERAL_SUBTREE_new();

	if (!*list)
		*list = sk_GENERAL_SUBTREE_new_null();
	if (tree) {
		GENERAL_NAME_free(tree->base);
		tree->base = make_general_name(kind, bytes, len);
	}
	if (tree && tree->base && *list && sk_GENERAL_SUBTREE_push(*list, tree) > 0)
		return true;
	GENERAL_SUBTREE_free(tree);
	return false;
}

struct kinds {
	bool name, every_name, four, six;
};

static bool permit_host(NAME_CONSTRAINTS *limits, const char *host, struct kinds *seen)
{
	unsigned char bytes[32];
	size_t        len = parse_address_bytes(host, bytes);

	seen->four |= len == 4;
	seen->six |= len == 16;
	if (len) { /* an address with a full mask: exactly this one */
		memset(bytes + len, 0xff, len);
		return add_subtree(&limits->permittedSubtrees, GEN_IPADD, bytes, 2 * len);
	}
	seen->name = true;
	if (strcmp(host, "*") == 0) {
		seen->every_name = true;
		return true;
	}
	host += begins_with(host, "*.") ? 2 : 0;
	return add_subtree(&limits->permittedSubtrees, GEN_DNS, host, strlen(host));
}

/* Permitted subtrees limit only names of their own kind: a kind that has none is excluded as a whole. */
static bool exclude_other_kinds(NAME_CONSTRAINTS *limits, const struct kinds *seen)
{
	static const unsigned char all[32];

	return (seen->name || add_subtree(&limits->excludedSubtrees, GEN_DNS, "", 0)) &&
	       (seen->four || seen->six || add_subtree(&limits->excludedSubtrees, GEN_IPADD, all, 8)) &&
	       (seen->four || seen->six || add_subtree(&limits->excludedSubtrees, GEN_IPADD, all, 32));
}

static bool add_name_constraints(X509 *cert, char *const *hosts, int n)
{
	NAME_CONSTRAINTS *limits = NAME_CONSTRAINTS_new();
	struct kinds      seen   = { 0 };
	bool              done   = limits != NULL;

	for (int i = 0; done && i < n; i++)
		done = permit_host(limits, hosts[i], &seen);
	for (int i = done && seen.every_name ? sk_GENERAL_SUBTREE_num(limits->permittedSubtrees) : 0; i-- > 0;)
		if (sk_GENERAL_SUBTREE_value(limits->permittedSubtrees, i)->base->type == GEN_DNS)
			GENERAL_SUBTREE_free(sk_GENERAL_SUBTREE_delete(limits->permittedSubtrees, i));
	if (done && sk_GENERAL_SUBTREE_num(limits->permittedSubtrees) == 0) {
		sk_GENERAL_SUBTREE_free(limits->permittedSubtrees); /* an empty list is malformed */
		limits->permittedSubtrees = NULL;
	}
	done = done && exclude_other_kinds(limits, &seen) &&
	       (!(limits->permittedSubtrees || limits->excludedSubtrees) ||
		X509_add1_ext_i2d(cert, NID_name_constraints, limits, 1, X509V3_ADD_DEFAULT) > 0);
	NAME_CONSTRAINTS_free(limits);
	return done;
}

/* --- certificates --- */

static bool set_random_serial(X509 *cert)
{
	unsigned char bytes[16];
	BIGNUM       *number = RAND_bytes(bytes, sizeof bytes) == 1 ? BN_bin2bn(bytes, sizeof bytes - 1, NULL) : NULL;
	bool          done   = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert));

	BN_free(number);
	return done;
}

/* name has a blank, so that no client takes the common name for the name of a host. */
static X509 *make_unsigned_cert(EVP_PKEY *key, const char *name, long seconds)
{
	X509 *cert = X509_new();

	if (cert && X509_set_version(cert, X509_VERSION_3) && set_random_serial(cert) &&
	    X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC, (const unsigned char *)name,
				       -1, -1, 0) &&
	    X509_gmtime_adj(X509_getm_notBefore(cert), -EARLIER_SECONDS) &&
	    X509_gmtime_adj(X509_getm_notAfter(cert), seconds) && X509_set_pubkey(cert, key))
		return cert;
	X509_free(cert);
	return NULL;
}

static bool add_extension(X509 *cert, X509 *issuer, int kind, const char *value)
{
	X509V3_CTX      context;
	X509_EXTENSION *extension;
	bool            done;

	X509V3_set_ctx(&context, issuer, cert, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
	done      = extension && X509_add_ext(cert, extension, -1);
	X509_EXTENSION_free(extension);
	return done;
}

static X509 *sign_cert(X509 *cert, bool is_whole, EVP_PKEY *key)
{
	if (is_whole && X509_sign(cert, key, EVP_sha256()) > 0)
		return cert;
	X509_free(cert);
	return NULL;
}

X509 *tls_cert_make_ca(EVP_PKEY *key, char *const *hosts, int n)
{
	X509 *cert = make_unsigned_cert(key, "brig, a CA for single hosts", CA_SECONDS);
	bool  done = cert && X509_set_issuer_name(cert, X509_get_subject_name(cert)) &&
		    add_extension(cert, cert, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
		    add_extension(cert, cert, NID_key_usage, "critical,keyCertSign") &&
		    add_extension(cert, cert, NID_ext_key_usage, "serverAuth") &&
		    add_extension(cert, cert, NID_subject_key_identifier, "hash") &&
			    add_name_constraints(cert, hosts, n);

	return sign_cert(cert, done, key);
}

static bool add_subject_alt_name(X509 *cert, const char *host)
{
	GENERAL_NAMES *names = sk_GENERAL_NAME_new_null();
	unsigned char  bytes[16];
	size_t         len   = parse_address_bytes(host, bytes);
	GENERAL_NAME  *name  = len ? make_general_name(GEN_IPADD, bytes, len) :
		make_general_name(GEN_DNS, host, strlen(host));
	bool           done  = names && name && sk_GENERAL_NAME_push(names, name) > 0;

	if (!done)
		GENERAL_NAME_free(name);
	done = done && X509_add1_ext_i2d(cert, NID_subject_alt_name, names, 0, X509V3_ADD_DEFAULT) > 0;
	GENERAL_NAMES_free(names);
	return done;
}

X509 *tls_cert_make_leaf(const struct tls_issuer *issuer, EVP_PKEY *key, const char *host)
{
	X509 *cert = make_unsigned_cert(key, "brig, for one host", TLS_LEAF_SECONDS);
	bool  done = cert && X509_set_issuer_name(cert, X509_get_subject_name(issuer->cert)) &&
		    add_extension(cert, issuer->cert, NID_basic_constraints, "critical,CA:FALSE") &&
		    add_extension(cert, issuer->cert, NID_key_usage, "critical,digitalSignature") &&
		    add_extension(cert, issuer->cert, NID_ext_key_usage, "serverAuth") &&
		    add_extension(cert, issuer->cert, NID_subject_key_identifier, "hash") &&
		    add_extension(cert, issuer->cert, NID_authority_key_identifier, "keyid:always") &&
		    add_subject_alt_name(cert, host);

	return sign_cert(cert, done, issuer->key);
}

/* --- --make-ca --- */

/* The text must fit into struct proxy_config, with a NUL. */
static int print_pem(BIO *text, int out_fd, struct err *e)
{
	char *bytes;
	long  len = BIO_get_mem_data(text, &bytes);

	if (len <= 0)
		return err_set(e, ERR_SETUP, "OpenSSL makes no CA");
	if (len >= NET_PEM_MAX)
		return err_set(e, ERR_LIMIT,
			       "too many hosts have methods, paths or a secret: their names do not fit into the "
			       "certificate of one CA");
	return file_write_all(out_fd, bytes, (size_t)len) < 0 ? err_sys(e, "write") : 0;
}

static int print_ca_cert_and_key(const struct tls_issuer *ca, int out_fd, struct err *e)
{
	BIO *cert = BIO_new(BIO_s_mem()), *key = BIO_new(BIO_s_secmem());
	int  done = -1;

	if (!cert || !key || !ca->cert || !PEM_write_bio_X509(cert, ca->cert) ||
	    !PEM_write_bio_PrivateKey(key, ca->key, NULL, NULL, 0, NULL, NULL))
		err_set(e, ERR_SETUP, "OpenSSL makes no CA");
	else
		done = print_pem(cert, out_fd, e) < 0 ? -1 : print_pem(key, out_fd, e);
	BIO_free(cert);
	BIO_free(key); /* BIO_s_secmem() clears the memory */
	return done;
}

int tls_make_ca(char *const *hosts, int n, int out_fd, struct err *e)
{
	struct tls_issuer ca   = { .key = tls_key_make() };
	int               done = -1;

	ca.cert = ca.key ? tls_cert_make_ca(ca.key, hosts, n) : NULL;
	done    = print_ca_cert_and_key(&ca, out_fd, e);
	X509_free(ca.cert);
	EVP_PKEY_free(ca.key);
	ERR_clear_error();
	return done;
}
