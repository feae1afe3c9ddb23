#include "net_report.h"
#include "tap.h"

#include <math.h>
#include <sys/socket.h>

static struct net_report *hostile(void)
{
	static struct net_report r;

	memset(&r, 0xff, sizeof r);
	r.connection[0].began_ms = NAN;
	r.connection[0].ended_ms = INFINITY;
	memcpy(r.connection[1].name, "\x1b[2Jx", 6);
	return &r;
}

static void test_hostile_reports(void)
{
	struct net_report     *r = hostile();
	struct net_connection *c = &r->connection[0];

	net_report_sanitize(r);
	tap_ok(r->n == NET_REPORT_MAX, "a number of connections above the maximum becomes the maximum");
	tap_ok(memchr(c->name, 0, sizeof c->name) && c->name[0] == '?', "a name without an end gets one, and its bytes become plain");
	tap_is(r->connection[1].name, "?[2Jx", "an escape sequence in a name becomes plain text");
	tap_ok(c->verdict <= NET_VERDICT_FAILED && c->reason < NET_REASONS && c->family == 0 && c->has_secret == 1, "numbers of words are in range");
	tap_ok(c->began_ms == 0 && c->ended_ms == 0, "moments are numbers");
}

int main(void)
{
	char text[400];

	for (unsigned i = NET_REASON_NONE + 1; i < NET_REASONS; i++) {
		net_reason_print(i, "example.org", text, sizeof text);
		tap_ok(*net_reason_name(i) && *text && !strstr(text, "%s"), "%s has a word and a sentence", net_reason_name(i));
	}
	net_reason_print(NET_REASON_NOT_ALLOWED, "example.org", text, sizeof text);
	tap_is(text, "example.org is not on the list of hosts that this run may reach", "the sentence has the name");
	net_reason_print(NET_REASON_NOT_ALLOWED, "%s%n", text, sizeof text);
	tap_ok(strncmp(text, "%s%n is", 7) == 0, "a name with percent signs is only text");
	net_reason_print(NET_REASON_NOT_ALLOWED, "example.org", text, 5);
	tap_is(text, "exam", "a short buffer is kept to");
	tap_is(net_reason_name(NET_REASONS + 7), "", "a reason that is none has no word");
	tap_is(net_verdict_name(NET_VERDICT_REFUSED), "refused", "a verdict has a word");
	tap_is(net_verdict_name(99), "", "a verdict that is none has no word");
	test_hostile_reports();
	return tap_done();
}
