#include "layer.h"
#include "record.h"
#include "tap.h"

static const char *const keys[] = {
	"run_id", "profile", "rootfs", "exit_reason", "exit_code", "signal", "limits_hit", "refused", "wall_ms", "cpu_ms", "memory_peak_bytes",
	"pids_peak", "io_read_bytes", "io_write_bytes", "stdout_bytes", "stderr_bytes", "truncated", "started_at", "setup_ms", "warm",
	"isolation", "result", "result_repr", "error", "variables", "security_event", "security_warnings", "files", "tool_calls", "session", "network",
};

static void check_keys(void)
{
	struct record r = { .result = &RUN_RESULT_NONE };
	json_t       *j;
	size_t        n = 0;
	const char   *key;
	json_t       *value;

	j = record_to_json(&r);
	json_object_foreach(j, key, value)
	{
		tap_ok(n < ARRAY_LEN(keys) && strcmp(key, keys[n++]) == 0, "key %s is in its place", key);
	}
	tap_ok(n == ARRAY_LEN(keys), "no key is missing");
	tap_ok(json_is_null(json_object_get(j, "memory_peak_bytes")), "a figure that was not measured is null, not 0");
	tap_ok(json_is_null(json_object_get(j, "started_at")), "what never started has no time");
	json_decref(j);
}

static void check_values(void)
{
	struct run_result result = RUN_RESULT_NONE;
	struct record     r      = { .result = &result };
	json_t           *j;
	char              name[16];

	result.reason             = EXIT_signaled;
	result.wait_status        = 11;
	result.figures.wall_ms    = 7.41249;
	result.started_at         = 1700000000.25;
	result.layers             = LAYER_BIT(SECCOMP);
	result.missing            = LAYER_BIT(LANDLOCK);
	result.hit[result.hits++] = (struct run_hit){ LIMIT_pids, 64, 64, 3 };
	j = record_to_json(&r);
	tap_is(json_string_value(json_object_get(j, "signal")), "SIGSEGV", "a signal has its name");
	tap_is(json_string_value(json_object_get(j, "started_at")), "2023-11-14T22:13:20.250000Z", "the time is UTC in ISO 8601");
	tap_ok(json_real_value(json_object_get(j, "wall_ms")) == 7.412, "milliseconds have three decimals");
	tap_is(json_string_value(json_array_get(json_object_get(j, "isolation"), 0)), "missing:landlock", "a missing layer says so");
	tap_is(json_string_value(json_array_get(json_object_get(j, "isolation"), 1)), "seccomp", "a layer in force is named");
	json_decref(j);
	tap_is(record_print_signal_name(34, name, sizeof name), "SIG34", "a real-time signal has its number");
}

/* What callers and the kernel named is told, whatever bytes it has: a key that is left out breaks who reads the record. */
static void check_words(void)
{
	struct run_result result = RUN_RESULT_NONE;
	struct record     r      = { .profile = "a\xff", .result = &result };
	json_t           *j;

	result.reason = EXIT_denied;
	err_set(&result.why, ERR_DENIED, "%.10s is refused", "--env \xf0\x9f\x98\x80=1");
	j = record_to_json(&r);
	tap_ok(json_object_size(j) == ARRAY_LEN(keys), "no key is missing when words are no UTF-8");
	tap_is(json_string_value(json_object_get(j, "profile")), "a\xef\xbf\xbd", "a profile that is no UTF-8 is told");
	tap_is(json_string_value(json_object_get(json_object_get(j, "error"), "message")), "--env \xf0\x9f\x98\x80 is refused", "a message keeps whole characters");
	json_decref(j);
	err_set(&result.why, ERR_DENIED, "%.9s is refused", "--env \xf0\x9f\x98\x80=1");
	j = record_to_json(&r);
	tap_is(json_string_value(json_object_get(json_object_get(j, "error"), "message")), "--env ??? is refused", "a message that was cut inside a character is told");
	json_decref(j);
}

/* As large as all but its lists can be. */
static void fill_most(struct run_result *r)
{
	memset(r->why.text, '"', sizeof r->why.text - 1);
	r->why.kind = ERR_SETUP;
	r->layers   = r->missing = (1ull << LAYER_COUNT) - 1;
}

static char *long_name(int number, char *buf, size_t len)
{
	(void)number;
	snprintf(buf, len, "socket_of_a_name_that_is_as_long");
	return buf;
}

static void check_refused(void)
{
	struct refused_call c = { .call = 41, .errnum = 97, .count = UINT32_MAX, .look = { .seen = 0x3f, .arg = { 16, 3, 77, 88, 99, ~0u } } };
	char                text[RECORD_TEXT_MAX];
	struct json_text    t = json_text_in(text, sizeof text);
	struct run_result   result = RUN_RESULT_NONE;
	struct record       r = { .rootfs = "basic", .result = &result, .call_name = long_name };
	json_t             *j, *row;

	j = record_to_json(&r);
	tap_ok(json_is_null(json_object_get(j, "refused")), "without a listener it is null");
	json_decref(j);
	result.refused_known = true;
	j                    = record_to_json(&r);
	tap_ok(json_is_array(json_object_get(j, "refused")) && json_array_size(json_object_get(j, "refused")) == 0, "none is an empty list");
	json_decref(j);
	while (result.refused.n < REFUSED_MAX)
		result.refused.row[result.refused.n++] = c;
	j   = record_to_json(&r);
	row = json_array_get(json_object_get(j, "refused"), REFUSED_MAX - 1);
	tap_is(json_string_value(json_object_get(row, "argument")), "AF_NETLINK, SOCK_RAW, 0x4d, 0x58, 0x63, 0xffffffff", "an argument has its name, or its number");
	tap_is(json_string_value(json_object_get(row, "answer")), "EAFNOSUPPORT", "an answer is an errno by name");
	tap_ok(json_integer_value(json_object_get(row, "count")) == UINT32_MAX, "a count is a number");
	json_decref(j);
	fill_most(&result);
	record_put_json(&t, &r);
	tap_ok(json_text_finish(&t) > 0, "the largest record has room");
	printf("# %zu bytes\n", t.len);
}

static void check_network(void)
{
	static struct net_report n; /* large */
	char                     text[RECORD_TEXT_MAX];
	struct json_text         t = json_text_in(text, sizeof text);
	struct run_result        result = RUN_RESULT_NONE;
	struct record            r = { .rootfs = "basic", .result = &result, .network = &n };
	json_t                  *j, *network, *row;

	n.n             = 2;
	n.connections   = n.refused = 1;
	n.connection[0] = (struct net_connection){ .name = "api.example.org", .port = 443, .family = 2, .address = { 192, 0, 2, 7 }, .verdict = NET_VERDICT_DONE,
						   .bytes_in = 1234, .bytes_out = 56, .began_ms = 10, .ended_ms = 22.5, .has_secret = 1 };
	n.connection[1] = (struct net_connection){ .name = "evil.example.org", .verdict = NET_VERDICT_REFUSED, .reason = NET_REASON_NOT_ALLOWED };
	j               = record_to_json(&r);
	network         = json_object_get(j, "network");
	row             = json_array_get(json_object_get(network, "connections"), 0);
	tap_is(json_string_value(json_object_get(row, "address")), "192.0.2.7", "a connection has the address that its name led to");
	tap_ok(json_integer_value(json_object_get(row, "bytes_in")) == 1234 && json_real_value(json_object_get(row, "ms")) == 12.5 && json_is_true(json_object_get(row, "secret")), "and bytes, time and whether a secret was sent");
	row = json_array_get(json_object_get(network, "connections"), 1);
	tap_is(json_string_value(json_object_get(row, "reason")), "not_allowed", "a refusal says why");
	tap_ok(json_is_null(json_object_get(row, "address")) && json_is_null(json_object_get(row, "port")) && json_is_null(json_object_get(row, "ms")), "what did not come so far is null");
	json_decref(j);
	n.n = NET_REPORT_MAX;
	for (size_t i = 0; i < NET_REPORT_MAX; i++) {
		n.connection[i] = n.connection[0];
		memset(n.connection[i].name, '"', sizeof n.connection[i].name - 1);
		n.connection[i].bytes_in = n.connection[i].bytes_out = UINT64_MAX;
		n.connection[i].began_ms = -1e15;
	}
	j       = record_to_json(&r);
	network = json_object_get(j, "network");
	tap_ok((size_t)json_integer_value(json_object_get(network, "left_out")) + json_array_size(json_object_get(network, "connections")) == NET_REPORT_MAX && json_array_size(json_object_get(network, "connections")) > 8,
	       "connections that a record has no room for are counted");
	json_decref(j);
	fill_most(&result);
	record_put_json(&t, &r);
	tap_ok(json_text_finish(&t) > 0, "the largest record with the largest network has room");
	printf("# %zu bytes\n", t.len);
}

int main(void)
{
	check_keys();
	check_values();
	check_words();
	check_refused();
	check_network();
	return tap_done();
}
