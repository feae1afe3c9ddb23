#define _GNU_SOURCE
#include "image.h"

#include "defs.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct image {
	char        type[16]; /* "image/png" */
	const char *data;     /* base64 */
	size_t      len;
};

static const char *const types[] = { "image/png", "image/jpeg", "image/gif", "image/webp" };

static bool is_base64_char(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
}

static bool take_type(const char *text, struct image *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		size_t n = strlen(types[i]);

		if (strncmp(text, types[i], n) != 0 || strncmp(text + n, ";base64,", 8) != 0)
			continue;
		strcpy(ret->type, types[i]);
		ret->data = text + n + 8;
		return true;
	}
	return false;
}

static bool is_image(const json_t *value, struct image *ret)
{
	const char *text = json_string_value(value);

	if (!text || strncmp(text, "data:", 5) != 0 || strlen(text) != json_string_length(value) || !take_type(text + 5, ret))
		return false;
	ret->len = strlen(ret->data);
	return images_shows(ret->type, ret->data, ret->len);
}

static json_t *take_one(const struct image *image, struct images *g)
{
	return images_add(g, image->type, image->data, image->len);
}

static json_t *take_list(const json_t *list, struct images *g)
{
	json_t      *words = json_array();
	struct image image;

	for (size_t i = 0; i < json_array_size(list); i++)
		if (is_image(json_array_get(list, i), &image))
			json_array_append_new(words, take_one(&image, g));
	return words;
}

static bool is_list_of_images(const json_t *list)
{
	struct image image;
	size_t       n = json_array_size(list);

	for (size_t i = 0; i < n && n <= IMAGES_MAX; i++)
		if (!is_image(json_array_get(list, i), &image))
			return false;
	return n > 0 && n <= IMAGES_MAX;
}

/* --- images in places where they cannot be shown --- */

static json_t *name_inside(const json_t *value);

static json_t *name_in_list(const json_t *list)
{
	json_t *made = json_array();

	for (size_t i = 0; i < json_array_size(list); i++)
		json_array_append_new(made, name_inside(json_array_get(list, i)));
	return made;
}

static json_t *name_in_object(const json_t *object)
{
	json_t     *made = json_object(), *value;
	const char *key;

	json_object_foreach((json_t *)object, key, value)
		json_object_set_new(made, key, name_inside(value));
	return made;
}

/* Replaces each image inside of the value by words, as base64 tells a model nothing. Recursion is bounded: wire.h limits the nesting of reports. */
static json_t *name_inside(const json_t *value)
{
	struct image image;

	if (is_image(value, &image))
		return json_sprintf("[%s, %zu bytes, not shown: make it the result itself]", image.type, image.len / 4 * 3);
	if (json_is_array(value))
		return name_in_list(value);
	return json_is_object(value) ? name_in_object(value) : json_incref((json_t *)value);
}

enum { TEXT_LEAST = 200 }; /* base64 that is shorter is shown */

/* The length of the data URL that begins here; 0: there is none, or its base64 is shorter than TEXT_LEAST. */
static size_t url_length(const char *text, size_t len, const char **type)
{
	size_t n;

	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		const char *middle = ";base64,";

		n     = strlen("data:") + strlen(types[i]) + strlen(middle);
		*type = types[i];
		if (len < n + TEXT_LEAST || strncmp(text + strlen("data:"), *type, strlen(*type)) != 0 || strncmp(text + n - strlen(middle), middle, strlen(middle)) != 0)
			continue;
		while (n < len && (is_base64_char(text[n]) || text[n] == '='))
			n++;
		return n < strlen("data:") + strlen(*type) + strlen(middle) + TEXT_LEAST ? 0 : n;
	}
	return 0;
}

char *image_name_in_text(const char *text, size_t len, size_t *ret_len)
{
	char       *made = NULL;
	FILE       *out  = open_memstream(&made, ret_len);
	const char *type, *end = text + len, *at;

	if (!out)
		return NULL;
	while ((at = memmem(text, (size_t)(end - text), "data:image/", 11))) {
		size_t n = url_length(at, (size_t)(end - at), &type);

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

json_t *image_take(const json_t *result, struct images *g)
{
	struct image image;

	if (is_image(result, &image))
		return take_one(&image, g);
	if (is_list_of_images(result))
		return take_list(result, g);
	return name_inside(result);
}
