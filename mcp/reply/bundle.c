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

static const char *bundle_find_picture_type(const json_t *bundle)
{
	for (size_t i = 0; i < ARRAY_LEN(pictures); i++) {
		const json_t *data = json_object_get(bundle, pictures[i]);

		if (json_is_string(data) &&
		    images_is_showable(pictures[i], json_string_value(data), json_string_length(data)))
			return pictures[i];
	}
	return NULL;
}

bool bundle_has_picture(const json_t *bundle)
{
	return bundle_find_picture_type(bundle) != NULL;
}

static json_t *bundle_text_to_json(const json_t *bundle)
{
	const json_t *json = json_object_get(bundle, "application/json");
	char         *dumped;
	json_t       *made;
	size_t        len = 0;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		const json_t *data = json_object_get(bundle, texts[i]);

		if (json_is_string(data))
			return clean_text_to_json(json_string_value(data), json_string_length(data));
	}
	dumped = json ? json_dump_exact(json, JSON_COMPACT | JSON_ENCODE_ANY, &len) : NULL;
	made   = dumped ? clean_text_to_json(dumped, len) : NULL;
	free(dumped);
	return made;
}

/* Saves the first value of a type that no client shows. NULL: there is no such value, or it is damaged. */
static json_t *bundle_save_to_file(const json_t *bundle, struct images *g)
{
	const struct other *o    = others;
	const json_t       *data = NULL;
	size_t              len  = 0;
	char               *bytes;
	json_t             *words;

	while (o < others + ARRAY_LEN(others) && !(data = json_object_get(bundle, o->type)))
		o++;
	if (!data)
		return NULL;
	if (json_is_string(data) && !o->is_base64)
		return images_save_unshown(g, o->type, o->ending, json_string_value(data), json_string_length(data));
	bytes = json_is_string(data) ? base64_decode(json_string_value(data), json_string_length(data), &len) :
				       json_dump_exact(data, JSON_COMPACT | JSON_ENCODE_ANY, &len);
	words = bytes ? images_save_unshown(g, o->type, o->ending, bytes, len) : NULL;
	free(bytes);
	return words;
}

json_t *bundle_add_to_reply(const json_t *bundle, struct images *g)
{
	const char   *type = bundle_find_picture_type(bundle);
	const json_t *data = type ? json_object_get(bundle, type) : NULL;
	json_t       *first, *second, *both;

	if (data)
		return images_add(g, type, json_string_value(data), json_string_length(data));
	if (json_object_get(bundle, PLOTLY)) {
		first  = bundle_save_to_file(bundle, g);
		second = json_string("A figure of plotly is not drawn here: draw it with matplotlib, which is shown, "
				     "or save it with write_html().");
	} else { /* "Figure({...})\n[application/..., saved as ...]" */
		first  = bundle_text_to_json(bundle);
		second = bundle_save_to_file(bundle, g);
	}
	if (!first || !second)
		return first ? first : second;
	both = json_sprintf("%s\n%s", json_string_value(first), json_string_value(second));
	json_decref(first);
	json_decref(second);
	return both;
}
