/* tools_content.c - tools that answer at once, with each kind of content */
#include "fixture.h"

#include <stdlib.h>

static void simple_text(struct call *c, const json_t *arguments)
{
	(void)arguments;
	tool_answer_text(c, "This is a simple text response for testing.", false);
}

static void image_content(struct call *c, const json_t *arguments)
{
	(void)arguments;
	tool_answer_blocks(c, json_pack("[{s:s,s:s,s:s}]", "type", "image", "data", PNG_PIXEL, "mimeType", "image/png"), NULL, false);
}

/* A header of 44 bytes and two samples of silence. */
static void audio_content(struct call *c, const json_t *arguments)
{
	(void)arguments;
	tool_answer_blocks(c, json_pack("[{s:s,s:s,s:s}]", "type", "audio", "data", "UklGRigAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQQAAAAAAAAA",
					"mimeType", "audio/wav"), NULL, false);
}

static json_t *embedded(const char *uri, const char *type, const char *text)
{
	return json_pack("{s:s,s:{s:s,s:s,s:s}}", "type", "resource", "resource", "uri", uri, "mimeType", type, "text", text);
}

static void embedded_resource(struct call *c, const json_t *arguments)
{
	(void)arguments;
	tool_answer_blocks(c, json_pack("[o]", embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")), NULL, false);
}

static void multiple_content_types(struct call *c, const json_t *arguments)
{
	(void)arguments;
	tool_answer_blocks(c, json_pack("[{s:s,s:s},{s:s,s:s,s:s},o]", "type", "text", "text", "Multiple content types test:", "type", "image", "data", PNG_PIXEL,
					"mimeType", "image/png",
					embedded("test://mixed-content-resource", "application/json", "{\"test\":\"data\",\"value\":123}")),
			   NULL, false);
}

static void error_handling(struct call *c, const json_t *arguments)
{
	(void)arguments;
	tool_answer_text(c, "This tool intentionally returns an error for testing", true);
}

static void echo(struct call *c, const json_t *arguments)
{
	size_t len;
	char  *text = rpc_dump(arguments, &len);

	tool_answer_text(c, text ? text : "", false);
	free(text);
}

#define CONTENT_TOOL(id, function, about) \
	const struct tool tool_##id = { .name = #id, .description = about, .input_schema = NO_ARGUMENTS, .read_only = true, .idempotent = true, .call = function }

CONTENT_TOOL(test_simple_text, simple_text, "Answers with a text.");
CONTENT_TOOL(test_image_content, image_content, "Answers with an image.");
CONTENT_TOOL(test_audio_content, audio_content, "Answers with audio.");
CONTENT_TOOL(test_embedded_resource, embedded_resource, "Answers with an embedded resource.");
CONTENT_TOOL(test_multiple_content_types, multiple_content_types, "Answers with a text, an image and a resource.");
CONTENT_TOOL(test_error_handling, error_handling, "Answers with an error.");

const struct tool tool_json_schema_2020_12_tool = {
	.name         = "json_schema_2020_12_tool",
	.description  = "Tool with JSON Schema 2020-12 features",
	.input_schema = "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\","
			"\"$defs\":{\"address\":{\"$anchor\":\"addressDef\",\"type\":\"object\","
			"\"properties\":{\"street\":{\"type\":\"string\"},\"city\":{\"type\":\"string\"}}}},"
			"\"properties\":{\"name\":{\"type\":\"string\"},\"address\":{\"$ref\":\"#/$defs/address\"},"
			"\"contactMethod\":{\"type\":\"string\",\"enum\":[\"phone\",\"email\"]},\"phone\":{\"type\":\"string\"},\"email\":{\"type\":\"string\"}},"
			"\"allOf\":[{\"anyOf\":[{\"required\":[\"phone\"]},{\"required\":[\"email\"]}]}],"
			"\"if\":{\"properties\":{\"contactMethod\":{\"const\":\"phone\"}},\"required\":[\"contactMethod\"]},"
			"\"then\":{\"required\":[\"phone\"]},\"else\":{\"required\":[\"email\"]},\"additionalProperties\":false}",
	.read_only    = true,
	.idempotent   = true,
	.call         = echo,
};

const struct tool tool_test_mirrored_header = {
	.name         = "test_mirrored_header",
	.description  = "Answers with its arguments, of which clients repeat two in headers.",
	.input_schema = "{\"type\":\"object\",\"properties\":{\"region\":{\"type\":\"string\",\"x-mcp-header\":\"Region\"},"
			"\"count\":{\"type\":\"integer\",\"x-mcp-header\":\"Count\"}},\"required\":[\"region\"],\"additionalProperties\":false}",
	.read_only    = true,
	.idempotent   = true,
	.call         = echo,
};
