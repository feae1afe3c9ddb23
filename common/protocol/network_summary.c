#include "network_summary.h"

#include "member.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

static bool is_missed_connection(const json_t *row)
{
	return strcmp(member_text(row, "verdict"), "refused") == 0 || strcmp(member_text(row, "verdict"), "failed") == 0;
}

/* One such row stands for all connections that the program tried after the end of brig-proxy. */
static bool is_lost_proxy_row(const json_t *row)
{
	return strcmp(member_text(row, "reason"), "proxy_gone") == 0;
}

/* Programs try again: each host is named once. */
static bool is_repeated_row(const json_t *list, size_t i)
{
	const json_t *row = json_array_get(list, i), *before;
	size_t        k;

	json_array_foreach(list, k, before)
		if (k >= i)
			break;
		else if (is_missed_connection(before) && strcmp(member_text(before, "name"), member_text(row, "name")) == 0 &&
			 json_equal(json_object_get(before, "port"), json_object_get(row, "port")) &&
			 strcmp(member_text(before, "reason"), member_text(row, "reason")) == 0)
			return true;
	return false;
}

static void append_connection(const json_t *row, char buf[NETWORK_SUMMARY_MAX])
{
	const char   *name = member_text(row, "name");
	const json_t *port = json_object_get(row, "port");
	size_t        at   = strlen(buf);
	char          one[160], number[16] = "";

	if (json_is_integer(port))
		snprintf(number, sizeof number, ":%u", (unsigned)json_integer_value(port) & 0xffff);
	snprintf(one, sizeof one, "%.100s%s (%.30s)", *name ? name : is_lost_proxy_row(row) ? "any host" : "?", number, member_text(row, "reason"));
	text_make_plain(one);
	snprintf(buf + at, NETWORK_SUMMARY_MAX - at, "%s%s", at ? ", " : "", one);
}

bool network_proxy_is_lost(const json_t *record)
{
	const json_t *list = json_object_get(json_object_get(record, "network"), "connections"), *row;
	size_t        i;

	json_array_foreach(list, i, row)
		if (is_lost_proxy_row(row))
			return true;
	return false;
}

char *network_print_summary(const json_t *record, size_t most, char buf[NETWORK_SUMMARY_MAX])
{
	const json_t *list = json_object_get(json_object_get(record, "network"), "connections");
	size_t        n    = 0, at;

	*buf = 0;
	for (size_t i = 0; i < json_array_size(list); i++) {
		if (!is_missed_connection(json_array_get(list, i)) || is_repeated_row(list, i))
			continue;
		if (n++ < most)
			append_connection(json_array_get(list, i), buf);
	}
	at = strlen(buf);
	if (n > most)
		snprintf(buf + at, NETWORK_SUMMARY_MAX - at, " and %zu more", n - most);
	return buf;
}
