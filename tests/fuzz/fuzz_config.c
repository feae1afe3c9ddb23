/* fuzz_config.c - any bytes as brig.json: what is accepted keeps every bound, names one user in each row, and can be written down and read again */
#include "config.h"
#include "fuzz_rows.h"

static void must_hold(const struct config *c)
{
	must_keep_bounds(config_fields, c);
	must(c->access_len <= CONFIG_ACCESS_MAX && c->access_len == json_array_size(c->access_rows));
	must(!c->ids.base == !c->ids.count && c->ids.base + c->ids.count <= UINT32_MAX);
	must(!c->audit.file || c->audit.file[0] == '/');
	for (size_t i = 0; i < c->access_len; i++) {
		const struct config_access *a = &c->access[i];

		must_keep_bounds(config_access_fields, a);
		must(!!a->user + !!a->group + (a->uid != CONFIG_NO_UID) == 1);
	}
}

static void must_read_the_same(const struct config *c)
{
	json_t       *first = rows_to_json(config_fields, c), *second;
	char         *text;
	scoped_config again = { 0 };
	struct err    e     = { 0 };

	if (!c->ids.count)
		json_object_del(first, "ids"); /* empty: what nobody said */
	text = json_dumps(first, JSON_COMPACT);
	must(text);
	if (strlen(text) <= CONFIG_MAX) {
		must_about(e.text, config_parse(&again, text, strlen(text), &e) == 0);
		second = rows_to_json(config_fields, &again);
		if (!again.ids.count)
			json_object_del(second, "ids");
		must_about(text, json_equal(first, second));
		json_decref(second);
	}
	json_decref(first);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped_config c = { 0 };
	struct err    e = { 0 };

	if (config_parse(&c, data, size, &e) < 0) {
		must_say_why(&e);
		must(!c.source);
		return 0;
	}
	must_hold(&c);
	must_read_the_same(&c);
	return 0;
}
