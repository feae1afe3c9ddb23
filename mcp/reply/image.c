#define _GNU_SOURCE
#include "image.h"

#include "defs.h"
#include "text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct image {
	char        type[16]; /* "image/png" */
	const char *data;     /* base64 */
	size_t      len;
};

static const char *const types[] = { "image/png", "image/jpeg", "image/gif", "image/webp" };

static bool parse_data_url_type(const char *text, struct image *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		size_t n = strlen(types[i]);

		if (strncmp(text, types[i], n) != 0 || !begins_with(text + n, ";base64,"))
			continue;
		strcpy(ret->type, types[i]);
		ret->data = text + n + 8;
		return true;
	}
	return false;
}

static bool parse_image_data_url(const json_t *value, struct image *ret)
{
	const char *text = json_string_value(value);

	if (!text || !begins_with(text, "data:") || strlen(text) != json_string_length(value) ||
	    !parse_data_url_type(text + 5, ret))
		return false;
	ret->len = strlen(ret->data);
	return images_is_showable(ret->type, ret->data, ret->len);
}

/* --- images in places where they cannot be shown --- */

/*
 * Replaces each image inside of the value by words, as base64 means nothing to a model. Recursion is bounded: wire.h
 * limits the nesting of reports.
 */
static json_t *replace_nested_images(const json_t *value)
{
	struct image image;
	const char  *key;
	json_t      *made, *one;
	size_t       i;

	if (parse_image_data_url(value, &image))
		return json_sprintf("[%s, %zu bytes, not shown: make it the result itself]", image.type,
				    image.len / 4 * 3);
	if (json_is_array(value)) {
		made = json_array();
		json_array_foreach((json_t *)value, i, one)
			json_array_append_new(made, replace_nested_images(one));
		return made;
	}
	if (json_is_object(value)) {
		made = json_object();
		json_object_foreach((json_t *)value, key, one)
			json_object_set_new(made, key, replace_nested_images(one));
		return made;
	}
	return json_incref((json_t *)value);
}

enum { TEXT_LEAST = 200 }; /* base64 that is shorter is shown */

/* The length of the data URL that begins here; 0: there is no such URL, or its base64 is shorter than TEXT_LEAST. */
static size_t image_data_url_length(const char *text, size_t len, const char **type)
{
	static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";

	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		size_t n = strlen("data:") + strlen(types[i]), begin = n + strlen(";base64,");

		if (len < begin + TEXT_LEAST || strncmp(text + strlen("data:"), types[i], strlen(types[i])) != 0 ||
		    !begins_with(text + n, ";base64,"))
			continue;
		*type = types[i];
		for (n = begin; n < len && text[n] && strchr(base64, text[n]); n++)
			;
		return n < begin + TEXT_LEAST ? 0 : n;
	}
	return 0;
}

char *image_replace_urls_in_text(const char *text, size_t len, size_t *ret_len)
{
	char       *made = NULL;
	FILE       *out  = open_memstream(&made, ret_len);
	const char *type, *end = text + len, *at;

	if (!out)
		return NULL;
	while ((at = memmem(text, (size_t)(end - text), "data:image/", 11))) {
		size_t n = image_data_url_length(at, (size_t)(end - at), &type);

		fwrite(text, 1, (size_t)(at - text), out);
		if (n)
			fprintf(out, "[%s, a data URL of %zu characters, not shown: make it the result]", type, n);
		else
			fwrite(at, 1, n = 1, out);
		text = at + n;
	}
	fwrite(text, 1, (size_t)(end - text), out);
	fclose(out);
	return made;
}

json_t *image_move_to_gallery(const json_t *result, struct images *g)
{
	struct image image[IMAGES_MAX];
	size_t       n = json_array_size(result), found = 0;
	json_t      *words;

	if (parse_image_data_url(result, image))
		return images_add(g, image->type, image->data, image->len);
	while (n <= IMAGES_MAX && found < n && parse_image_data_url(json_array_get(result, found), &image[found]))
		found++;
	if (!n || found < n)
		return replace_nested_images(result);
	words = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append_new(words, images_add(g, image[i].type, image[i].data, image[i].len));
	return words;
}
