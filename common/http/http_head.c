#define _GNU_SOURCE
#include "http_head.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PARAM_PREFIX "mcp-param-"

static const struct {
	const char *name;
	size_t      at;
} fields[] = {
	/* clang-format off */
	{ "host",                 offsetof(struct http_head, host) },
	{ "origin",               offsetof(struct http_head, origin) },
	{ "authorization",        offsetof(struct http_head, authorization) },
	{ "content-type",         offsetof(struct http_head, content_type) },
	{ "content-length",       offsetof(struct http_head, content_length) },
	{ "transfer-encoding",    offsetof(struct http_head, transfer_encoding) },
	{ "expect",               offsetof(struct http_head, expect) },
	{ "mcp-protocol-version", offsetof(struct http_head, protocol_version) },
	{ "mcp-method",           offsetof(struct http_head, mcp_method) },
	{ "mcp-name",             offsetof(struct http_head, mcp_name) },
	{ "mcp-session-id",       offsetof(struct http_head, session_id) },
	{ "x-session-id",         offsetof(struct http_head, x_session_id) },
	{ "x-auth-token",         offsetof(struct http_head, x_auth_token) },
	/* clang-format on */
};

static char *copy_trimmed(const char *value)
{
	size_t len;

	value += strspn(value, " \t");
	len = strlen(value);
	while (len && (value[len - 1] == ' ' || value[len - 1] == '\t'))
		len--;
	return strndup(value, len);
}

static void head_set_fault(struct http_head *h, const char *what, const char *name)
{
	if (!*h->fault)
		(void)snprintf(h->fault, sizeof h->fault, "%.48s %.60s", what, name);
}

static void head_add_param(struct http_head *h, const char *name, const char *value)
{
	struct head_find_param p = { 0 };

	if (head_find_param(h, name)) {
		head_set_fault(h, "Send only one header Mcp-Param-", name);
		return;
	}
	if (h->n_params == HEAD_PARAMS_MAX) {
		head_set_fault(h, "Too many headers Mcp-Param-*; one too many is", name);
		return;
	}
	p.name  = strdup(name);
	p.value = copy_trimmed(value);
	h->param[h->n_params++] = p;
	if (!p.name || !p.value)
		head_set_fault(h, "No memory for", name);
}

static void head_append_accept(struct http_head *h, const char *value)
{
	char *joined = NULL;

	if (asprintf(&joined, "%s%s%s", h->accept ? h->accept : "", h->accept ? "," : "", value) < 0)
		return;
	free(h->accept);
	h->accept = joined;
}

/* RFC 9110, 5.6.2 */
static bool is_header_name(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!name[i] ||
		    !strchr("!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", name[i]))
			return false;
	return len > 0;
}

static bool is_header_value(const char *value, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (((unsigned char)value[i] < 0x20 && value[i] != '\t') || value[i] == 0x7f)
			return false;
	return true;
}

void head_check_header(struct http_head *h, const char *name, size_t name_len, const char *value, size_t value_len)
{
	if (!is_header_name(name, name_len))
		head_set_fault(h, "Invalid header name:", name);
	else if (!is_header_value(value, value_len))
		head_set_fault(h, "A control character in the header", name);
}

void head_store_header(struct http_head *h, const char *name, const char *value)
{
	value = value ? value : "";
	if (!strcasecmp(name, "accept"))
		head_append_accept(h, value);
	if (!strncasecmp(name, PARAM_PREFIX, strlen(PARAM_PREFIX)))
		head_add_param(h, name + strlen(PARAM_PREFIX), value);
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		char **field = (char **)((char *)h + fields[i].at);

		if (strcasecmp(name, fields[i].name) != 0)
			continue;
		if (*field)
			head_set_fault(h, "Send only one header", name);
		else if (!(*field = copy_trimmed(value)))
			head_set_fault(h, "No memory for", name);
	}
}

void head_done(struct http_head *h)
{
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		free(*(char **)((char *)h + fields[i].at));
	for (size_t i = 0; i < h->n_params; i++) {
		free(h->param[i].name);
		free(h->param[i].value);
	}
	free(h->accept);
	*h = (struct http_head){ 0 };
}

const char *head_find_param(const struct http_head *h, const char *name)
{
	for (size_t i = 0; i < h->n_params; i++)
		if (h->param[i].name && !strcasecmp(h->param[i].name, name))
			return h->param[i].value;
	return NULL;
}

static bool is_content_type(const char *type, const char *wanted)
{
	size_t n = strlen(wanted);

	return type && !strncasecmp(type, wanted, n) && (!type[n] || strchr("; \t", type[n]));
}

bool head_has_json_body(const struct http_head *h)
{
	return is_content_type(h->content_type, "application/json");
}

bool head_has_text_body(const struct http_head *h)
{
	return is_content_type(h->content_type, "text/plain");
}

bool head_has_one_body_length(const struct http_head *h)
{
	const char *length = h->content_length;

	if (h->transfer_encoding)
		return !length && !strcasecmp(h->transfer_encoding, "chunked");
	return !length || (*length && strlen(length) <= 19 && strspn(length, "0123456789") == strlen(length));
}

bool head_accepts_event_stream(const struct http_head *h)
{
	return !h->accept || strcasestr(h->accept, "text/event-stream") || strcasestr(h->accept, "text/*") ||
	       strstr(h->accept, "*/*");
}

bool head_has_own_session_id(const struct http_head *h)
{
	const char *id = h->session_id;
	size_t      n  = id ? strspn(id, "0123456789abcdef") : 0;

	return n == 32 && (!id[n] || strcmp(id + n, HEAD_ELICITS_MARK) == 0);
}
