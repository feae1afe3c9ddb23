#include "base64.h"

#include <stdlib.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *base64_encode(const void *bytes, size_t len)
{
	const unsigned char *from = bytes;
	char                *made = malloc(len / 3 * 4 + 8);
	size_t               n    = 0;

	for (size_t i = 0; made && i < len; i += 3) {
		unsigned bits = (unsigned)from[i] << 16;

		bits |= i + 1 < len ? (unsigned)from[i + 1] << 8 : 0;
		bits |= i + 2 < len ? from[i + 2] : 0;
		made[n++] = digits[bits >> 18];
		made[n++] = digits[bits >> 12 & 63];
		made[n++] = i + 1 < len ? digits[bits >> 6 & 63] : '=';
		made[n++] = i + 2 < len ? digits[bits & 63] : '=';
	}
	if (made)
		made[n] = 0;
	return made;
}

int base64_digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/*
 * Decodes four digits; the last quad may end in one or two '='. Unused bits must be zero. Returns the number of bytes,
 * or -1.
 */
static int decode_quad(const char quad[4], bool last, unsigned char ret[3])
{
	int      n    = quad[3] != '=' ? 3 : quad[2] != '=' ? 2 : 1;
	uint32_t bits = 0;

	if (n < 3 && (!last || (n == 1 && quad[3] != '=')))
		return -1;
	for (int i = 0; i < 4; i++) {
		int d = i <= n ? base64_digit(quad[i]) : 0;

		if (d < 0)
			return -1;
		bits = bits << 6 | (uint32_t)d;
	}
	if ((n == 1 && bits & 0xffff) || (n == 2 && bits & 0xff))
		return -1;
	for (int i = 0; i < n; i++)
		ret[i] = (unsigned char)(bits >> (16 - 8 * i));
	return n;
}

char *base64_decode(const char *text, size_t len, size_t *ret_len)
{
	unsigned char *ret  = len % 4 ? NULL : malloc(len / 4 * 3 + 1);
	size_t         used = 0;

	for (size_t i = 0; ret && i < len; i += 4) {
		int n = decode_quad(text + i, i + 4 == len, ret + used);

		if (n < 0) {
			free(ret);
			return NULL;
		}
		used += (size_t)n;
	}
	if (!ret)
		return NULL;
	ret[used] = 0;
	*ret_len  = used;
	return (char *)ret;
}
