#include "secret.h"

#include <string.h>

static bool secret_matches_host(const struct net_secret *s, const char *host, uint16_t port)
{
	return s->port == port && strcmp(s->host, host) == 0;
}

bool secret_exists_for_host(const struct proxy_config *config, const char *host, uint16_t port)
{
	for (unsigned i = 0; i < config->secrets; i++)
		if (secret_matches_host(&config->secret[i], host, port))
			return true;
	return false;
}

size_t secret_headers(const struct proxy_config *config, const char *host, uint16_t port,
		      struct request_set set[NET_SECRETS_MAX])
{
	size_t n = 0;

	for (unsigned i = 0; i < config->secrets; i++)
		if (secret_matches_host(&config->secret[i], host, port))
			set[n++] = (struct request_set){ config->secret[i].header, config->secret[i].value };
	return n;
}

bool secret_allows_method(const struct request_head *h)
{
	static const char *const repeating[] = { "TRACE", "TRACK", "OPTIONS" };

	for (size_t i = 0; i < ARRAY_LEN(repeating); i++)
		if (span_equals(h->method_text, repeating[i]))
			return false;
	return h->method != 0;
}

/* --- replies --- */

void secret_mask_init(struct secret_mask *m, const struct proxy_config *config, const char *host, uint16_t port)
{
	memset(m, 0, offsetof(struct secret_mask, hold));
	for (unsigned i = 0; i < config->secrets; i++) {
		const struct net_secret *s = &config->secret[i];

		if (!secret_matches_host(s, host, port) || s->secret_len == 0)
			continue;
		m->secret[m->secrets++]                              = s;
		m->is_first[(unsigned char)s->value[s->secret_from]] = true;
		m->longest = s->secret_len > m->longest ? s->secret_len : m->longest;
	}
}

/* The length of the longest secret that begins here and is whole; 0: none does. */
static size_t match_secret_at(const struct secret_mask *m, const char *at, size_t left)
{
	size_t matched = 0;

	if (!m->is_first[(unsigned char)*at])
		return 0;
	for (size_t i = 0; i < m->secrets; i++) {
		const struct net_secret *s = m->secret[i];

		if (s->secret_len <= left && s->secret_len > matched &&
		    memcmp(at, s->value + s->secret_from, s->secret_len) == 0)
			matched = s->secret_len;
	}
	return matched;
}

/* Masks what begins in the first `n` of len bytes, as far as these go. Returns how many bytes behind them belong to a
 * secret, too. */
static size_t mask_bytes(struct secret_mask *m, char *bytes, size_t n, size_t len, size_t mask_left)
{
	for (size_t i = 0; i < n; i++) {
		size_t matched = match_secret_at(m, bytes + i, len - i);

		if (matched > mask_left)
			mask_left = matched;
		m->has_masked |= matched > 0;
		if (mask_left) {
			bytes[i] = '*';
			mask_left--;
		}
	}
	return mask_left;
}

void secret_mask_whole(struct secret_mask *m, char *bytes, size_t n)
{
	(void)mask_bytes(m, bytes, n, n, 0);
}

size_t secret_mask_flush(struct secret_mask *m, char *out)
{
	size_t n = m->held - m->passed;

	memcpy(out, m->hold, m->held);
	(void)mask_bytes(m, out, m->held, m->held, m->mask_left);
	memmove(out, out + m->passed, n);
	m->passed = m->held;
	return n;
}

size_t secret_mask_step(struct secret_mask *m, const char *in, size_t len, char *out)
{
	size_t n = m->held + len, most = m->longest ? m->longest - 1 : 0, decided = n > most ? n - most : 0;
	size_t from = m->passed, to = decided > from ? decided : from;

	if (len == 0)
		return 0;
	if (m->secrets == 0) {
		memcpy(out, in, len);
		return len;
	}
	memcpy(out, m->hold, m->held);
	memcpy(out + m->held, in, len);
	m->mask_left = mask_bytes(m, out, decided, n, m->mask_left);
	m->held      = n - decided;
	m->passed    = to - decided;
	memcpy(m->hold, out + decided, m->held);
	memmove(out, out + from, to - from);
	return to - from;
}

size_t secret_mask_finish(struct secret_mask *m, char *out)
{
	size_t n = secret_mask_flush(m, out);

	m->held = m->passed = m->mask_left = 0;
	return n;
}
