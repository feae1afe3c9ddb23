#include "bundle.h"

#include "base64.h"
#include "clean.h"
#include "exact.h"

#include <stdlib.h>
#include <string.h>

/* In order of preference. */
static const char *const pictures[] = { "image/png", "image/jpeg" };
static const char *const texts[]    = { "text/plain", "text/markdown", "text/latex", "text/html" };

#define PLOTLY "application/vnd.plotly.v1+json"

/* No client shows these types: they are saved as a file, if there is a directory for it. */
static const struct other {
	const char *type, *ending;
	bool        is_base64;
} others[] = {
	{ "image/svg+xml", "svg", false },
	{ "application/pdf", "pdf", true },
	{ PLOTLY, "plotly.json", false },
	{ "application/javascript", "js", false },
};

static const char *find_picture(const json_t *bundle)
{
	for (size_t i = 0; i < ARRAY_LEN(pictures); i++) {
		const json_t *data = json_object_get(bundle, pictures[i]);

		if (json_is_string(data) && images_shows(pictures[i], json_string_value(data), json_string_length(data)))
			return pictures[i];
	}
	return NULL;
}

bool bundle_has_picture(const json_t *bundle)
{
	return find_picture(bundle) != NULL;
}

static json_t *clean_json(const char *bytes, size_t len)
{
	size_t  n     = 0;
	char   *clean = clean_text(bytes, len, false, &n);
	json_t *made  = clean ? json_stringn(clean, n) : NULL;

	free(clean);
	return made;
}

static json_t *dump(const json_t *value)
{
	size_t  len  = 0;
	char   *text = exact_dump(value, JSON_COMPACT | JSON_ENCODE_ANY, &len);
	json_t *made = text ? clean_json(text, len) : NULL;

	free(text);
	return made;
}

static json_t *take_text(const json_t *bundle)
{
	const json_t *json = json_object_get(bundle, "application/json");

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		const json_t *data = json_object_get(bundle, texts[i]);

		if (json_is_string(data))
			return clean_json(json_string_value(data), json_string_length(data));
	}
	return json ? dump(json) : NULL;
}

static json_t *save(const struct other *o, const json_t *data, struct images *g)
{
	size_t  len   = 0;
	char   *bytes = json_is_string(data) ? NULL : exact_dump(data, JSON_COMPACT | JSON_ENCODE_ANY, &len);
	json_t *words;

	if (o->is_base64 && json_is_string(data))
		bytes = base64_decode(json_string_value(data), json_string_length(data), &len);
	if (bytes || !json_is_string(data))
		words = bytes ? images_save(g, o->type, o->ending, bytes, len) : NULL;
	else
		words = o->is_base64 ? NULL : images_save(g, o->type, o->ending, json_string_value(data), json_string_length(data));
	free(bytes);
	return words;
}

static json_t *take_other(const json_t *bundle, struct images *g)
{
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (json_object_get(bundle, others[i].type))
			return save(&others[i], json_object_get(bundle, others[i].type), g);
	return NULL;
}

/* Puts other after the text: "Figure({...})\n[application/vnd..., saved as ...]" */
static json_t *join(json_t *text, json_t *other)
{
	json_t *both;

	if (!text || !other)
		return text ? text : other;
	both = json_sprintf("%s\n%s", json_string_value(text), json_string_value(other));
	json_decref(text);
	json_decref(other);
	return both;
}

json_t *bundle_take(const json_t *bundle, struct images *g)
{
	const char   *type = find_picture(bundle);
	const json_t *data = type ? json_object_get(bundle, type) : NULL;

	if (data)
		return images_add(g, type, json_string_value(data), json_string_length(data));
	if (json_object_get(bundle, PLOTLY))
		return join(take_other(bundle, g), json_string("A figure of plotly is not drawn here: draw it with matplotlib, which is shown, or save it with write_html()."));
	return join(take_text(bundle), take_other(bundle, g));
}
