/*
 * layouts.c - prints as JSON how this build lays out structs that brig's processes send each other, and numbers and words in them
 *
 * For tests that are one of these processes (layout.py): a copy of a struct in Python would be right for one version only.
 */
#include "child.h"
#include "net_listeners.h"
#include "proxy_protocol.h"

#include <stddef.h>
#include <stdio.h>

static const char *between = "";

static void begin(const char *name, size_t size)
{
	printf("%s\"%s\":{\"size\":%zu,\"fields\":[", between, name, size);
	between = "";
}

static void end(void)
{
	fputs("]}", stdout);
	between = ",";
}

/* A type with [rows] behind it is an array of that type; with two, the first is that of the inner array. */
static void field(const char *name, size_t at, const char *type)
{
	printf("%s[\"%s\",%zu,\"%s", between, name, at, type);
	between = ",";
}

static void number(const char *name, int value)
{
	printf("%s\"%s\":%d", between, name, value);
	between = ",";
}

static void word(const char *text)
{
	printf("%s\"%s\"", between, text);
	between = ",";
}

/* clang-format off */
#define TYPE(x) _Generic((x), char: "char", uint8_t: "u8", uint16_t: "u16", uint32_t: "u32", uint64_t: "u64", int32_t: "i32", int64_t: "i64", double: "f64", \
	struct net_rule: "net_rule", struct net_rules: "net_rules", struct net_secret: "net_secret", struct net_connection: "net_connection")
#define MEMBER(f) ((struct S *)NULL)->f
#define ONE(f)    (field(#f, offsetof(struct S, f), TYPE(MEMBER(f))), fputs("\"]", stdout))
#define MANY(f)   (field(#f, offsetof(struct S, f), TYPE(MEMBER(f)[0])), printf("[%zu]\"]", ARRAY_LEN(MEMBER(f))))
#define TEXTS(f)  (field(#f, offsetof(struct S, f), TYPE(MEMBER(f)[0][0])), printf("[%zu][%zu]\"]", ARRAY_LEN(MEMBER(f)[0]), ARRAY_LEN(MEMBER(f))))
#define NUMBER(n) number(#n, n)

static void print_rules(void)
{
#define S net_rule
	begin("net_rule", sizeof(struct S));
	ONE(host_kind); ONE(scheme); ONE(methods); ONE(paths); ONE(port); ONE(is_private); MANY(host); TEXTS(path);
	end();
#undef S
#define S net_rules
	begin("net_rules", sizeof(struct S));
	ONE(n); MANY(rule);
	end();
#undef S
}

static void print_proxy(void)
{
#define S net_secret
	begin("net_secret", sizeof(struct S));
	MANY(name); MANY(host); ONE(port); MANY(header); MANY(value); ONE(secret_from); ONE(secret_len);
	end();
#undef S
#define S proxy_config
	begin("proxy_config", sizeof(struct S));
	ONE(allow); ONE(ceiling); ONE(deny); ONE(has_ca); MANY(ca_cert); MANY(ca_key); ONE(secrets); MANY(secret); MANY(upstream);
	end();
#undef S
#define S proxy_message
	begin("proxy_message", sizeof(struct S));
	ONE(kind); ONE(run); ONE(bytes_max); ONE(connections_max); ONE(rate_max); ONE(cpus); ONE(user);
	end();
#undef S
#define S net_listeners
	begin("net_listeners", sizeof(struct S));
	ONE(ports); MANY(port);
	end();
#undef S
}

static void print_report(void)
{
#define S net_connection
	begin("net_connection", sizeof(struct S));
	MANY(name); ONE(port); ONE(family); ONE(has_secret); MANY(address); ONE(verdict); ONE(reason); ONE(bytes_in); ONE(bytes_out); ONE(began_ms); ONE(ended_ms);
	ONE(again_ms);
	end();
#undef S
#define S net_report
	begin("net_report", sizeof(struct S));
	ONE(n); ONE(left_out); ONE(connections); ONE(refused); ONE(failed); ONE(bytes_in); ONE(bytes_out); ONE(over); MANY(connection);
	end();
#undef S
}

static void print_child(void)
{
#define S child_report
	begin("child_report", sizeof(struct S));
	ONE(message); ONE(table); ONE(step); ONE(detail); ONE(errnum); ONE(cpu_ns); ONE(cpu_before_ns);
	end();
#undef S
}

static void print_numbers(void)
{
	NUMBER(NET_HOST_NAME); NUMBER(NET_HOST_BELOW); NUMBER(NET_HOST_PUBLIC); NUMBER(NET_HOST_ADDRESS); NUMBER(NET_HOST_ANYTHING);
	NUMBER(NET_SCHEME_ANY); NUMBER(NET_SCHEME_HTTPS); NUMBER(NET_SCHEME_HTTP); NUMBER(NET_SCHEME_TCP);
	NUMBER(NET_METHOD_GET); NUMBER(NET_METHOD_HEAD); NUMBER(NET_METHOD_POST);
	NUMBER(PROXY_BEGIN); NUMBER(PROXY_END);
	NUMBER(CHILD_FAILED); NUMBER(CHILD_PREPARED); NUMBER(CHILD_EXECS); NUMBER(CHILD_LISTENER);
}
/* clang-format on */

int main(void)
{
	fputs("{\"structs\":{", stdout);
	print_rules();
	print_proxy();
	print_report();
	print_child();
	fputs("},\"numbers\":{", stdout);
	between = "";
	print_numbers();
	fputs("},\"reasons\":[", stdout);
	between = "";
	for (int i = 0; i < NET_REASONS; i++)
		word(net_reason_name((enum net_reason)i));
	fputs("],\"verdicts\":[", stdout);
	between = "";
	for (int i = 0; i <= NET_VERDICT_FAILED; i++)
		word(net_verdict_name((enum net_verdict)i));
	puts("]}");
	return fflush(stdout) == 0 ? 0 : 1;
}
