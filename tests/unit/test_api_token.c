#include "api_token.h"
#include "tap.h"

#include <stdio.h>
#include <string.h>

#define SECRET "0123456789abcdef0123456789abcdef"
#define SHA256 "f1f5a0e61cbd04e9c41ca1a2c3dc8e9e0a7cb0ac3c3d3b3b3b3b3b3b3b3b3b3b"

static struct api_tokens tokens;

static bool is_refused(const char *text, const char *part)
{
	struct err e = { 0 };

	return api_tokens_parse(&tokens, text, &e) < 0 && strstr(e.text, part);
}

static struct api_token *found(char *authorization, char *x_auth_token)
{
	struct http_head h = { .authorization = authorization, .x_auth_token = x_auth_token };

	return api_tokens_find(&tokens, &h);
}

int main(void)
{
	char          line[256], hex[65];
	unsigned char digest[HTTP_DIGEST_BYTES];
	struct err    e;

	http_digest_text(SECRET, digest);
	for (size_t i = 0; i < sizeof digest; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	snprintf(line, sizeof line, "# all\n\na:%s profile=strict\truns=3 per_minute=60 apis=piston,judge0 \r\nb:%s\n", hex, SHA256);
	tap_ok(api_tokens_parse(&tokens, line, &e) == 0 && tokens.n == 2 && tokens.row[0].runs == 3 && tokens.row[0].per_minute == 60 &&
		       strcmp(tokens.row[0].profile, "strict") == 0 && !interface_set_has(tokens.row[0].interfaces, INTERFACE_nemo) &&
		       interface_set_has(tokens.row[0].interfaces, INTERFACE_piston) && tokens.row[1].interfaces == INTERFACE_ALL,
	       "a line has a profile, a quota and interfaces");
	tap_ok(found((char[]){ "Bearer " SECRET }, NULL) == &tokens.row[0], "the token of a digest is let in");
	tap_ok(found(NULL, (char[]){ SECRET }) == &tokens.row[0], "so it is in the header of Judge0's clients");
	tap_ok(found((char[]){ "Basic eDowMTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZg==" }, NULL) == &tokens.row[0], "and as the password of a URL");
	tap_ok(!found((char[]){ "Bearer " SECRET "x" }, NULL) && !found((char[]){ "Bearer" }, NULL) && !found(NULL, NULL) && !found((char[]){ "Basic ====" }, NULL),
	       "nothing else is");
	snprintf(line, sizeof line, "Bearer %s", hex);
	tap_ok(!found(line, NULL), "the digest itself is no token");
	tap_ok(api_tokens_parse(&tokens, SECRET "\n", &e) == 0 && tokens.n == 1 && found((char[]){ "Bearer " SECRET }, NULL), "one token alone");
	tap_ok(is_refused("x\n", "needs 32") && is_refused("", "no token") && is_refused("#\n", "no token"), "a weak one is refused, and none");
	tap_ok(is_refused("a:12\n", "line 1: expected NAME:SHA256"), "a digest has 64 digits");
	snprintf(line, sizeof line, "a:%s\nb:%s\n", hex, hex);
	tap_ok(is_refused(line, "line 2: b: this name or this token comes twice"), "one token has one name");
	snprintf(line, sizeof line, "a:%s nonesuch=1\n", hex);
	tap_ok(is_refused(line, "line 1: a: \"nonesuch=1\""), "an unknown word is named");
	return tap_done();
}
