#include "http_admission.h"

#include "http_daemon.h"
#include "inet.h"
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static enum route admission_refuse(struct refusal *ret, int status, const char *code, const char *fmt, ...)
	printf_like(4, 5);
static enum route admission_refuse(struct refusal *ret, int status, const char *code, const char *fmt, ...)
{
	va_list args;

	*ret = (struct refusal){ .status = status, .code = code };
	va_start(args, fmt);
	(void)vsnprintf(ret->text, sizeof ret->text, fmt, args);
	va_end(args);
	text_make_plain(ret->text); /* it may quote the request */
	return ROUTE_REFUSED;
}

static bool list_has_name(const json_t *list, const char *text)
{
	size_t  i;
	json_t *one;

	json_array_foreach ((json_t *)list, i, one)
		if (json_is_string(one) && !strcasecmp(json_string_value(one), text))
			return true;
	return false;
}

bool admission_allows_host(const struct admission *a, const char *host)
{
	char name[256];

	if (!host || !http_parse_authority_host(host, name))
		return false;
	return inet_host_is_loopback(name) || list_has_name(a->allow_host, host) ||
	       list_has_name(a->allow_host, name) || (*a->address && !strcasecmp(a->address, name));
}

bool admission_is_listed_origin(const struct admission *a, const char *origin)
{
	return origin && list_has_name(a->allow_origin, origin);
}

/* Also pages of this host, at any port. "null" is the origin of sandboxed frames and of files, and is refused. */
bool admission_allows_origin(const struct admission *a, const char *origin)
{
	const char *rest;
	char        name[256];

	if (admission_is_listed_origin(a, origin))
		return true;
	if (begins_with(origin, "http://"))
		rest = origin + 7;
	else if (begins_with(origin, "https://"))
		rest = origin + 8;
	else
		return false;
	return http_parse_authority_host(rest, name) && inet_host_is_loopback(name);
}

static enum route refuse_method(struct refusal *ret, const char *method, const char *allow)
{
	(void)admission_refuse(ret, 405, "method", "%.20s is not served here; send %s", method, allow);
	ret->allow = allow;
	return ROUTE_REFUSED;
}

static bool is_get_or_head(const char *method)
{
	return !strcmp(method, "GET") || !strcmp(method, "HEAD");
}

static enum route admission_check_body(const struct admission *a, const struct http_head *h, struct refusal *ret)
{
	if (!head_has_json_body(h))
		return admission_refuse(ret, 415, "content-type", "Send Content-Type: application/json");
	if (!head_has_one_body_length(h))
		return admission_refuse(ret, 400, "length",
					"Send either one Content-Length or Transfer-Encoding: chunked");
	if (h->content_length && strtoull(h->content_length, NULL, 10) > a->body_max)
		return admission_refuse(ret, 413, "size", "A message may have %zu bytes, this one has %.19s",
					a->body_max, h->content_length);
	return ROUTE_MCP;
}

static bool is_allowed_preflight(const struct admission *a, const struct http_head *h, const char *method)
{
	return !strcmp(method, "OPTIONS") && admission_is_listed_origin(a, h->origin);
}

enum route admission_choose_route(const struct admission *a, const struct http_head *h, const char *method,
				  const char *path, struct refusal *ret)
{
	bool metrics = !strcmp(path, "/metrics");

	if (!strcmp(path, "/healthz"))
		return is_get_or_head(method) ? ROUTE_HEALTH : refuse_method(ret, method, "GET, HEAD");
	if (*h->fault)
		return admission_refuse(ret, 400, "header", "%s", h->fault);
	if (!admission_allows_host(a, h->host))
		return admission_refuse(ret, 403, "host", "This host name is not served; --allow-host adds one");
	if (h->origin && !admission_allows_origin(a, h->origin))
		return admission_refuse(ret, 403, "origin",
					"Pages of this origin may not call; --allow-origin adds one");
	if (!metrics && strcmp(path, "/mcp") != 0)
		return admission_refuse(ret, 404, "path", "Nothing is served here; MCP is at /mcp");
	if (!metrics && is_allowed_preflight(a, h, method))
		return ROUTE_PREFLIGHT;
	if (!token_authorizes(&a->token, h->authorization))
		return admission_refuse(ret, 401, "unauthorized", "Unauthorized");
	if (metrics)
		return is_get_or_head(method) ? ROUTE_METRICS : refuse_method(ret, method, "GET, HEAD");
	if (!strcmp(method, "DELETE") && head_has_own_session_id(h))
		return ROUTE_END;
	return !strcmp(method, "POST") ? admission_check_body(a, h, ret) : refuse_method(ret, method, "POST");
}
