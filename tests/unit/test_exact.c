#include "exact.h"
#include "tap.h"

/* clang-format off */
static const struct {
	const char *says, *from, *to;
} rows[] = {
	{ "0.41 stays 0.41",                           "[0.41]",                        "[0.41]" },
	{ "pi keeps its last digit",                   "[3.141592653589793]",           "[3.141592653589793]" },
	{ "a sum of tenths is not rounded",            "[0.30000000000000004]",         "[0.30000000000000004]" },
	{ "a whole real stays a real",                 "[4.0,-0.0]",                    "[4.0,-0.0]" },
	{ "the largest and the smallest double",       "[1.7976931348623157e308,5e-324]", "[1.7976931348623157e308,4.94065645841247e-324]" },
	{ "integers are not touched",                  "[9007199254740993,-1,0]",       "[9007199254740993,-1,0]" },
	{ "numbers in texts and keys are texts",       "{\"1.50000000000000001\":\"0.10000000000000001 \\\" 2.50\"}", "{\"1.50000000000000001\":\"0.10000000000000001 \\\" 2.50\"}" },
	{ "a text that ends with a backslash",         "[\"\\\\\",0.1]",                "[\"\\\\\",0.1]" },
	{ "words and empty things",                    "[true,false,null,{},[],\"\"]",  "[true,false,null,{},[],\"\"]" },
};
/* clang-format on */

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_t *value = json_loads(rows[i].from, 0, NULL);
		size_t  len   = 0;
		char   *text  = json_dump_exact(value, JSON_COMPACT, &len);
		json_t *again = text ? json_loads(text, 0, NULL) : NULL;

		if (text && strcmp(text, rows[i].to) != 0)
			printf("#   %s\n", text);
		tap_ok(text && strcmp(text, rows[i].to) == 0 && strlen(text) == len && json_equal(value, again), "%s", rows[i].says);
		free(text);
		json_decref(value);
		json_decref(again);
	}
	return tap_done();
}
