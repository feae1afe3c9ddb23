#include "secret.h"

#include <string.h>

static bool is_for(const struct net_secret *s, const char *host, uint16_t port)
{
	return s->port == port && strcmp(s->host, host) == 0;
}

bool secret_is_for(const struct proxy_config *config, const char *host, uint16_t port)
{
	for (unsigned i = 0; i < config->secrets; i++)
		if (is_for(&config->secret[i], host, port))
			return true;
	return false;
}

size_t secret_headers(const struct proxy_config *config, const char *host, uint16_t port, struct request_set set[NET_SECRETS_MAX])
{
	size_t n = 0;

	for (unsigned i = 0; i < config->secrets; i++)
		if (is_for(&config->secret[i], host, port))
			set[n++] = (struct request_set){ config->secret[i].header, config->secret[i].value };
	return n;
}

bool secret_allows(const struct request_head *h)
{
	static const char *const repeating[] = { "TRACE", "TRACK", "OPTIONS" };

	for (size_t i = 0; i < ARRAY_LEN(repeating); i++)
		if (span_is(h->method_text, repeating[i]))
			return false;
	return h->method != 0;
}

/* --- replies --- */

void secret_mask_begin(struct secret_mask *m, const struct proxy_config *config, const char *host, uint16_t port)
{
	memset(m, 0, offsetof(struct secret_mask, hold));
	m->little = 3;
	for (unsigned i = 0; i < config->secrets; i++) {
		const struct net_secret *s = &config->secret[i];

		if (!is_for(s, host, port) || s->secret_len == 0)
			continue;
		m->secret[m->secrets++]                              = s;
		m->is_first[(unsigned char)s->value[s->secret_from]] = true;
		m->little                                            = s->secret_len / 8 < m->little ? s->secret_len / 8 : m->little;
	}
}

struct look {
	size_t matched;  /* length of the longest secret that begins here; 0: none does */
	bool   may_come; /* all bytes up to the end are the beginning of a secret */
};

static struct look look_at(const struct secret_mask *m, const char *at, size_t left)
{
	struct look found = { 0 };

	if (!m->is_first[(unsigned char)*at])
		return found;
	for (size_t i = 0; i < m->secrets; i++) {
		const struct net_secret *s = m->secret[i];
		size_t                   n = s->secret_len < left ? s->secret_len : left;

		if (memcmp(at, s->value + s->secret_from, n) != 0)
			continue;
		if (n < s->secret_len)
			found.may_come = true;
		else if (n > found.matched)
			found.matched = n;
	}
	return found;
}

/* Masks secrets in bytes and returns how many bytes are decided; the others could begin a secret and stay as they are. */
static size_t decide(struct secret_mask *m, char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		struct look here = look_at(m, bytes + i, len - i);

		if (here.matched > m->mask_left)
			m->mask_left = here.matched;
		m->has_masked |= here.matched > 0;
		if (here.may_come)
			return i;
		if (m->mask_left) {
			bytes[i] = '*';
			m->mask_left--;
		}
	}
	return len;
}

size_t secret_mask_step(struct secret_mask *m, const char *in, size_t len, char *out)
{
	size_t n = m->held + len, from = m->passed, decided, to;

	if (len == 0)
		return 0;
	memcpy(out, m->hold, m->held);
	memcpy(out + m->held, in, len);
	decided = decide(m, out, n);
	m->held = n - decided;
	memcpy(m->hold, out + decided, m->held);
	to = m->held <= m->little ? n : decided;
	for (size_t i = decided; i < to && i - decided < m->mask_left; i++)
		out[i] = '*';
	if (to < from)
		to = from;
	m->passed = to - decided;
	memmove(out, out + from, to - from);
	return to - from;
}

size_t secret_mask_end(struct secret_mask *m, char *out)
{
	size_t n = m->held - m->passed; /* masked, although the secret is incomplete: the beginning of a secret tells too much */

	memset(out, '*', n);
	m->has_masked |= n > 0;
	m->held = m->passed = 0;
	return n;
}
