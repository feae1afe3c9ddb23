#define _GNU_SOURCE
#include "tool_value.h"

#include "clean.h"
#include "member.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_text_block(const json_t *block)
{
	return strcmp(member_text(block, "type"), "text") == 0 && json_is_string(json_object_get(block, "text"));
}

static bool all_blocks_are_text(const json_t *content)
{
	for (size_t i = 0; i < json_array_size(content); i++)
		if (!is_text_block(json_array_get(content, i)))
			return false;
	return true;
}

/* The texts of the blocks, joined by newlines. A text may contain NUL. */
static json_t *join_text_blocks(const json_t *content)
{
	char   *text = NULL;
	size_t  len, i;
	FILE   *out = open_memstream(&text, &len);
	json_t *made, *block;

	if (!out)
		return NULL;
	json_array_foreach((json_t *)content, i, block) {
		const json_t *one = json_object_get(block, "text");

		if (is_text_block(block))
			fprintf(out, "%s", i ? "\n" : ""), fwrite(json_string_value(one), 1, json_string_length(one), out);
	}
	fclose(out);
	made = text ? json_stringn(text, len) : NULL;
	free(text);
	return made;
}

/* --- blocks that are not text --- */

static const char *mime_type_or(const json_t *of, const char *unsaid)
{
	const char *type = member_text(of, "mimeType");

	return *type ? type : unsaid;
}

static void put_text_member(json_t *bundle, const char *key, const json_t *value)
{
	if (json_is_string(value))
		json_object_set(bundle, key, (json_t *)value);
}

static json_t *block_to_bundle(const json_t *block)
{
	const char   *kind = member_text(block, "type");
	const json_t *file = json_object_get(block, "resource"), *of = json_is_object(file) ? file : block;
	json_t       *made = json_object();

	put_text_member(made, mime_type_or(of, "application/octet-stream"), json_object_get(block, "data"));
	put_text_member(made, mime_type_or(of, "application/octet-stream"), json_object_get(file, "blob"));
	put_text_member(made, mime_type_or(of, "text/plain"), json_object_get(file, "text"));
	put_text_member(made, "uri", json_object_get(of, "uri"));
	put_text_member(made, "name", json_object_get(of, "name"));
	if (strcmp(kind, "resource_link") == 0)
		put_text_member(made, "mimeType", json_object_get(of, "mimeType"));
	return made;
}

static json_t *blocks_to_json(const json_t *content)
{
	json_t *made = json_array(), *block;
	size_t  i;

	json_array_foreach((json_t *)content, i, block) {
		if (is_text_block(block))
			json_array_append(made, json_object_get(block, "text"));
		else
			json_array_append_new(made, block_to_bundle(block));
	}
	return made;
}

/* --- */

static char *tool_error_text(const json_t *content)
{
	json_t     *text = join_text_blocks(content);
	const char *raw = json_string_value(text);
	size_t      n    = json_string_length(text);
	char       *made = clean_text(raw ? raw : "", clean_cut_length(raw ? raw : "", n, TOOL_ERROR_MAX), false, &n);

	if (made && !*made) {
		free(made);
		made = strdup("the tool has failed, and gives no reason");
	}
	json_decref(text);
	return made;
}

json_t *tool_result_to_value(const json_t *result, char **error)
{
	const json_t *content = json_object_get(result, "content"), *structured = json_object_get(result, "structuredContent");
	const char   *type    = member_text(result, "resultType");

	*error = NULL;
	if (*type && strcmp(type, "complete") != 0)
		*error = strdup("the tool asks for something that a program cannot give (input, or a task)");
	else if (json_is_true(json_object_get(result, "isError")))
		*error = tool_error_text(content);
	if (*error)
		return NULL;
	if (structured && !json_is_null(structured))
		return json_incref((json_t *)structured);
	return all_blocks_are_text(content) ? join_text_blocks(content) : blocks_to_json(content);
}
