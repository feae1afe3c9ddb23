#include "net_report.h"
#include "text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* clang-format off */
static const struct {
	const char *word, *sentence;
} reasons[] = {
#define REASON(id, word, sentence) [NET_REASON_##id] = { word, sentence },
#include "net_reason.def"
#undef REASON
};
/* clang-format on */

const char *net_reason_name(enum net_reason reason)
{
	return reason < NET_REASONS ? reasons[reason].word : "";
}

void net_reason_print(enum net_reason reason, const char *name, char *text, size_t size)
{
	const char *sentence = reason < NET_REASONS ? reasons[reason].sentence : "", *at = strstr(sentence, "%s");

	if (at)
		snprintf(text, size, "%.*s%s%s", (int)(at - sentence), sentence, name, at + 2);
	else
		snprintf(text, size, "%s", sentence);
}

const char *net_verdict_name(enum net_verdict verdict)
{
	static const char *const words[] = {
		[NET_VERDICT_OPEN]    = "open",
		[NET_VERDICT_DONE]    = "done",
		[NET_VERDICT_REFUSED] = "refused",
		[NET_VERDICT_FAILED]  = "failed",
	};

	return verdict < ARRAY_LEN(words) ? words[verdict] : "";
}

static void sanitize_ms(double *ms)
{
	if (!isfinite(*ms) || *ms < 0)
		*ms = 0;
}

static void sanitize_connection(struct net_connection *c)
{
	c->name[NET_HOST_MAX - 1] = 0;
	text_make_plain(c->name);
	if (c->family != AF_INET && c->family != AF_INET6)
		c->family = 0;
	c->has_secret = c->has_secret != 0;
	if (c->verdict > NET_VERDICT_FAILED)
		c->verdict = NET_VERDICT_FAILED;
	if (c->reason >= NET_REASONS)
		c->reason = NET_REASON_NONE;
	sanitize_ms(&c->began_ms);
	sanitize_ms(&c->ended_ms);
	sanitize_ms(&c->again_ms);
}

void net_report_sanitize(struct net_report *report)
{
	if (report->n > NET_REPORT_MAX)
		report->n = NET_REPORT_MAX;
	for (unsigned i = 0; i < report->n; i++)
		sanitize_connection(&report->connection[i]);
}
