#include "refusal_text.h"

#include "http_line.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct {
	unsigned status; /* 0: 403 */
	const char *advice; /* %s: the host and port to allow */
} answers[NET_REASONS] = {
	[NET_REASON_NOT_ALLOWED]  = { 403, "allow it with --net %s, or in network.allow of the profile" },
	[NET_REASON_NOT_PUBLIC]   = { 403, "a rule of the profile for %s may say \"private\": true" },
	[NET_REASON_BAD_REQUEST]  = { 400, NULL },
	[NET_REASON_BAD_NAME]     = { 400, NULL },
	[NET_REASON_TOO_SLOW]     = { 408, NULL },
	[NET_REASON_UNRESOLVED]   = { 502, NULL },
	[NET_REASON_UNREACHABLE]  = { 502, NULL },
	[NET_REASON_UPSTREAM_TLS] = { 502, NULL },
	[NET_REASON_BAD_REPLY]    = { 502, NULL },
	[NET_REASON_TOO_MANY]     = { 503, NULL },
	[NET_REASON_NO_MEMORY]    = { 503, NULL },
};
/* clang-format on */

static void print_sentence(enum net_reason reason, const char *host, uint16_t port, char *text, size_t size)
{
	char rule[HTTP_AUTHORITY_MAX], sentence[NET_HOST_MAX + 256], advice[NET_HOST_MAX + 256] = "";

	net_reason_print(reason, host[0] ? host : "the host", sentence, sizeof sentence);
	http_print_authority(host, port == 443 || port == 80 ? 0 : port, rule); /* as a rule is written */
	if (answers[reason].advice && host[0]) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* the format is in the table above */
		(void)snprintf(advice, sizeof advice, answers[reason].advice, rule);
#pragma GCC diagnostic pop
	}
	(void)snprintf(text, size, "%s%s%s", sentence, advice[0] ? "; " : "", advice);
}

size_t refusal_print(enum net_reason reason, const char *host, uint16_t port, char *text, size_t size)
{
	char sentence[REFUSAL_MAX / 2 - 128];
	int  n;

	print_sentence(reason, host, port, sentence, sizeof sentence);
	n = snprintf(
		text, size,
		"HTTP/1.1 %u brig: %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %zu\r\nConnection: "
		"close\r\n\r\nbrig: %s\n",
		answers[reason].status ? answers[reason].status : 403, sentence, strlen(sentence) + strlen("brig: \n"),
		sentence);
	return n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
}
