/* resources.c - test:// resources, one of them made from a template */
#include "fixture.h"

#include <stdio.h>
#include <string.h>

#define TEMPLATE_BEGIN "test://template/"
#define TEMPLATE_END   "/data"

static const struct resource {
	const char *uri, *name, *description, *type, *text, *blob;
} rows[] = {
	{ "test://static-text", "static-text", "A text", "text/plain", "This is the content of the static text resource.", NULL },
	{ "test://static-binary", "static-binary", "An image", "image/png", NULL, PNG_PIXEL },
	{ "test://watched-resource", "watched-resource", "A text to subscribe to", "text/plain", "Nothing has changed.", NULL },
};

void resources_list(struct call *c)
{
	json_t *list = json_array();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:s}", "uri", rows[i].uri, "name", rows[i].name, "description", rows[i].description,
						      "mimeType", rows[i].type));
	fixture_cacheable(c, json_pack("{s:o}", "resources", list));
}

void resources_templates_list(struct call *c)
{
	fixture_cacheable(c, json_pack("{s:[{s:s,s:s,s:s,s:s}]}", "resourceTemplates", "uriTemplate", TEMPLATE_BEGIN "{id}" TEMPLATE_END, "name", "template",
				       "description", "Data of an id", "mimeType", "application/json"));
}

static json_t *from_row(const char *uri)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (!strcmp(rows[i].uri, uri))
			return json_pack("{s:s,s:s,s:s*,s:s*}", "uri", uri, "mimeType", rows[i].type, "text", rows[i].text, "blob", rows[i].blob);
	return NULL;
}

static json_t *from_template(const char *uri)
{
	size_t  len = strlen(uri), begin = strlen(TEMPLATE_BEGIN), end = strlen(TEMPLATE_END);
	char    id[100], text[300];
	json_t *data;

	if (len <= begin + end || len - begin - end >= sizeof id || strncmp(uri, TEMPLATE_BEGIN, begin) != 0 || strcmp(uri + len - end, TEMPLATE_END) != 0)
		return NULL;
	(void)snprintf(id, sizeof id, "%.*s", (int)(len - begin - end), uri + begin);
	if (strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != strlen(id))
		return NULL;
	(void)snprintf(text, sizeof text, "{\"id\":\"%s\",\"templateTest\":true,\"data\":\"Data for ID: %s\"}", id, id);
	data = json_pack("{s:s,s:s,s:s}", "uri", uri, "mimeType", "application/json", "text", text);
	return data;
}

static void not_found(struct call *c, const char *uri)
{
	struct rpc_error e;

	(void)rpc_error_set(&e, revision_is_modern(c->revision) ? RPC_INVALID_PARAMS : RPC_RESOURCE_NOT_FOUND, "Resource not found");
	e.data = json_pack("{s:s}", "uri", uri);
	call_answer_failure(c, &e);
}

void resources_read(struct call *c)
{
	const char *uri  = fixture_text(c->params, "uri", NULL);
	json_t     *data = uri ? from_row(uri) : NULL;

	if (!uri) {
		fixture_invalid(c, "uri: expected a text");
		return;
	}
	if (!data)
		data = from_template(uri);
	if (data)
		fixture_cacheable(c, json_pack("{s:[o]}", "contents", data));
	else
		not_found(c, uri);
}

void resources_subscribe(struct call *c)
{
	call_answer_result(c, json_object());
}
