#define _GNU_SOURCE
#include "mirror.h"

#include "base64.h"
#include "text.h"

#include <ctype.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_header_token(const char *text)
{
	if (!text || !*text || strlen(text) > 64)
		return false;
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && *text != '-' && *text != '_')
			return false;
	return true;
}

static void learn_mirrored_headers(json_t *known, const json_t *tool)
{
	json_t     *headers = json_object(), *schema;
	const char *name    = json_string_value(json_object_get(tool, "name")), *key;

	json_object_foreach(json_object_get(json_object_get(tool, "inputSchema"), "properties"), key, schema)
	{
		const char *header = json_string_value(json_object_get(schema, "x-mcp-header"));

		if (is_header_token(header))
			json_object_set_new(headers, key, json_string(header));
	}
	if (name && json_object_size(headers))
		json_object_set(known, name, headers);
	json_decref(headers);
}

void mirror_learn_tools(json_t *known, const json_t *result)
{
	size_t  i;
	json_t *tool;

	json_array_foreach(json_object_get(result, "tools"), i, tool)
		learn_mirrored_headers(known, tool);
}

/* --- */

static bool is_plain_header_value(const char *text)
{
	size_t n = strlen(text);

	if (n && (isspace((unsigned char)text[0]) || isspace((unsigned char)text[n - 1])))
		return false;
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || (unsigned char)*text >= 0x7f)
			return false;
	return true;
}

char *mirror_encode_value(const char *text)
{
	char *coded, *made = NULL;

	if (is_plain_header_value(text) && !begins_with(text, "=?base64?"))
		return strdup(text);
	coded = base64_encode(text, strlen(text));
	if (coded && asprintf(&made, "=?base64?%s?=", coded) < 0)
		made = NULL;
	free(coded);
	return made;
}

static char *header_value_of_json(const json_t *value)
{
	if (json_is_string(value))
		return mirror_encode_value(json_string_value(value));
	if (json_is_boolean(value) || json_is_number(value))
		return json_dumps(value, JSON_ENCODE_ANY);
	return NULL;
}

struct curl_slist *mirror_append_headers(struct curl_slist *headers, const json_t *known, const json_t *params)
{
	const char *tool = json_string_value(json_object_get(params, "name")), *key;
	json_t     *header;

	json_object_foreach(tool ? json_object_get(known, tool) : NULL, key, header)
	{
		struct curl_slist *longer = headers;
		char *value = header_value_of_json(json_object_get(json_object_get(params, "arguments"), key)), *line = NULL;

		if (value && asprintf(&line, *value ? "Mcp-Param-%s: %s" : "Mcp-Param-%s;%s", json_string_value(header), value) >= 0) /* libcurl: ';' sends an empty one */
			longer = curl_slist_append(headers, line);
		free(value);
		free(line);
		if (!longer) {
			curl_slist_free_all(headers);
			return NULL;
		}
		headers = longer;
	}
	return headers;
}
