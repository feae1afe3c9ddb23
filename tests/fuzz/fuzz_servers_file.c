/* fuzz_servers_file.c - a file of servers: entries that can be started or say why not, or one reason */
#include "fuzz.h"
#include "server_entry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct server_entries s;
	struct err            e = { 0 };

	if (server_entries_parse(&s, (const char *)data, size, &e) < 0) {
		must(*e.text);
		return 0;
	}
	for (size_t i = 0; i < s.n; i++) {
		const struct server_entry *one = &s.entry[i];

		must(*one->name && *one->identifier && strlen(one->identifier) <= SERVER_NAME_MAX && one->kind < SERVER_KINDS);
		must(one->kind == SERVER_stdio ? json_array_size(one->argv) > 0 : one->url != NULL);
	}
	server_entries_done(&s);
	return 0;
}
