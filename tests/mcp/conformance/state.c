/*
 * state.c - what a client keeps for us from one round to the next.
 *
 * It could have been changed, or made for another call or by another client:
 * sealed with HMAC-SHA256 over the state, whose it is, the tool, its arguments
 * and the time until when it counts.
 */
#define OPENSSL_SUPPRESS_DEPRECATED /* the EVP ones would link half of libcrypto for its providers */
#include "fixture.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOOD_FOR_MS 600000
#define SEAL_HEX    64
#define BLOCK       64

/* RFC 2104, with a key that is shorter than a block. */
static void hmac(const unsigned char key[32], const char *text, unsigned char ret[32])
{
	unsigned char pad[2][BLOCK];
	SHA256_CTX    sha;

	memset(pad[0], 0x36, BLOCK);
	memset(pad[1], 0x5c, BLOCK);
	for (size_t i = 0; i < 64; i++)
		pad[i / 32][i % 32] ^= key[i % 32];
	SHA256_Init(&sha);
	SHA256_Update(&sha, pad[0], BLOCK);
	SHA256_Update(&sha, text, strlen(text));
	SHA256_Final(ret, &sha);
	SHA256_Init(&sha);
	SHA256_Update(&sha, pad[1], BLOCK);
	SHA256_Update(&sha, ret, 32);
	SHA256_Final(ret, &sha);
}

static int seal_of(const struct call *c, const char *state, char hex[SEAL_HEX + 1])
{
	const char   *name      = fixture_text(c->params, "name", "");
	const json_t *arguments = json_object_get(c->params, "arguments");
	json_t       *all       = json_pack("[s,s,s,O?,s]", c->channel->principal, c->method, name, arguments, state);
	char         *text      = all ? json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	unsigned char raw[32];

	json_decref(all);
	if (!text)
		return -1;
	hmac(conformance_of(c)->key, text, raw);
	free(text);
	for (size_t i = 0; i < sizeof raw; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", raw[i]);
	return 0;
}

json_t *state_seal(const struct call *c, const json_t *state)
{
	json_t *kept = json_pack("{s:O,s:I}", "state", state, "until", (json_int_t)(loop_now_ms() + GOOD_FOR_MS));
	char   *text = json_dumps(kept, JSON_COMPACT);
	char    hex[SEAL_HEX + 1];
	json_t *sealed = text && seal_of(c, text, hex) == 0 ? json_sprintf("%s.%s", hex, text) : json_string("");

	json_decref(kept);
	free(text);
	return sealed;
}

static bool seal_is(const char *a, const char *b)
{
	unsigned char differ = 0;

	for (size_t i = 0; i < SEAL_HEX; i++)
		differ |= (unsigned char)(a[i] ^ b[i]);
	return !differ;
}

static json_t *unseal(const struct call *c, const char *text)
{
	char hex[SEAL_HEX + 1];

	if (strlen(text) < SEAL_HEX + 1 || text[SEAL_HEX] != '.')
		return NULL;
	if (seal_of(c, text + SEAL_HEX + 1, hex) < 0 || !seal_is(text, hex))
		return NULL;
	return json_loads(text + SEAL_HEX + 1, 0, NULL);
}

int state_open(struct call *c, json_t **ret)
{
	const json_t *given = json_object_get(c->params, "requestState");
	json_t       *kept  = json_is_string(given) ? unseal(c, json_string_value(given)) : NULL;

	*ret = NULL;
	if (!given)
		return 0;
	if (!kept || json_integer_value(json_object_get(kept, "until")) < loop_now_ms()) {
		json_decref(kept);
		fixture_invalid(c, "requestState is not what this server gave out for this call, or too old; call again without it");
		return -1;
	}
	*ret = json_incref(json_object_get(kept, "state"));
	json_decref(kept);
	return 0;
}
