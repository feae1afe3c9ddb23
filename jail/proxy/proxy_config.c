#include "proxy_config.h"

#include "sealed.h"
#include "text.h"
#include "upstream.h"

#include <string.h>
#include <sys/mman.h>

static bool secret_is_sound(const struct net_secret *s)
{
	return text_has_terminator(s->name, sizeof s->name) && text_has_terminator(s->host, sizeof s->host) &&
	       text_has_terminator(s->header, sizeof s->header) &&
	       text_has_terminator(s->value, sizeof s->value) && s->header[0] && s->secret_from <= strlen(s->value) &&
	       s->secret_len <= strlen(s->value) - s->secret_from;
}

static const char *find_config_fault(const struct proxy_config *c)
{
	char     host[NET_HOST_MAX];
	uint16_t port;
	bool     is_address;

	if (!net_rules_are_sound(&c->allow) || !net_rules_are_sound(&c->ceiling) || !net_rules_are_sound(&c->deny))
		return "its rules are malformed";
	if (!text_has_terminator(c->ca_cert, sizeof c->ca_cert) || !text_has_terminator(c->ca_key, sizeof c->ca_key))
		return "its CA is malformed";
	if (c->secrets > NET_SECRETS_MAX)
		return "its secrets are malformed";
	for (uint32_t i = 0; i < c->secrets; i++)
		if (!secret_is_sound(&c->secret[i]))
			return "its secrets are malformed";
	if (!text_has_terminator(c->upstream, sizeof c->upstream) ||
	    (c->upstream[0] && !upstream_parse(c->upstream, host, &port, &is_address)))
		return "its upstream is not HOST:PORT";
	return NULL;
}

const struct proxy_config *proxy_config_map(int fd, struct err *e)
{
	const struct proxy_config *config;
	const char                *why;
	size_t                     len;

	if (sealed_check(fd, sizeof *config, &len, e) < 0) {
		err_wrap(e, "the configuration");
		return NULL;
	}
	config = len == sizeof *config ? mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
	why    = config == MAP_FAILED ? "it has another size" : find_config_fault(config);
	if (!why)
		return config;
	err_set(e, ERR_BROKEN, "the configuration is of no use: %s", why);
	return NULL;
}
