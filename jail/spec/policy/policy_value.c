#define _GNU_SOURCE /* strerrorname_np, F_OFD_SETLK */
#include "policy_value.h"

#include "text.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define VALUE(call, arg, name)           { #name, #call, arg, (uint32_t)name },
#define VALUE_IS(call, arg, name, value) { #name, #call, arg, value },
/* They do not use VALUE(): the preprocessor would replace a name that is a macro with its number. */
#define OPTION(arg, name)    { #name, "setsockopt", arg, (uint32_t)name }, { #name, "getsockopt", arg, (uint32_t)name },
#define SENT(name)           { #name, "sendto", 3, name }, { #name, "sendmmsg", 3, name }, { #name, "sendmsg", 2, name },
#define RECEIVED(name)       { #name, "recvfrom", 3, name }, { #name, "recvmmsg", 3, name }, { #name, "recvmsg", 2, name },
#define RESOURCE(name)       { #name, "setrlimit", 0, (uint32_t)name }, { #name, "prlimit64", 1, (uint32_t)name },
static const struct policy_value values[] = {
#include "policy_value.def"
};
#undef RESOURCE
#undef RECEIVED
#undef SENT
#undef OPTION
#undef VALUE
#undef VALUE_IS

static bool parse_number(const char *word, uint32_t *ret)
{
	bool        hex    = begins_with(word, "0x");
	const char *digits = hex ? word + 2 : word;
	size_t      len    = strlen(digits);

	if (len == 0 || len > 10 || strspn(digits, hex ? "0123456789abcdefABCDEF" : "0123456789") != len)
		return false;
	unsigned long long value = strtoull(digits, NULL, hex ? 16 : 10);
	if (value > UINT32_MAX)
		return false;
	*ret = (uint32_t)value;
	return true;
}

bool policy_value_for_each(const char *word, void (*each)(void *context, uint32_t value), void *context)
{
	size_t   len    = strlen(word);
	bool     prefix = len > 2 && word[len - 1] == '*', found = false;
	uint32_t number;

	if (parse_number(word, &number)) {
		each(context, number);
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		if (prefix ? strncmp(values[i].name, word, len - 1) == 0 : strcmp(values[i].name, word) == 0) {
			each(context, values[i].value);
			found = true;
		}
	return found;
}

static bool row_fits_argument(const struct policy_value *row, const char *call, unsigned arg)
{
	return begins_with(call, row->call) && (row->arg < 0 || row->arg == (int)arg);
}

/* NULL if several names fit: the meaning of a socket option depends on its level. */
const char *policy_value_name(const char *call, unsigned arg, uint32_t value)
{
	const char *found = NULL;

	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		if (values[i].value != value || !row_fits_argument(&values[i], call, arg))
			continue;
		if (found)
			return NULL;
		found = values[i].name;
	}
	return found;
}

const char *policy_value_sockopt_name(const char *call, uint32_t level, uint32_t value)
{
	static const struct {
		uint32_t    level;
		const char *prefix;
	} rows[] = { { SOL_SOCKET, "SO_" }, { IPPROTO_TCP, "TCP_" }, { IPPROTO_IP, "IP_" }, { IPPROTO_IPV6, "IPV6_" } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t k = 0; rows[i].level == level && k < ARRAY_LEN(values); k++)
			if (values[k].value == value && row_fits_argument(&values[k], call, 2) &&
			    begins_with(values[k].name, rows[i].prefix))
				return values[k].name;
	return NULL;
}

void policy_value_print_bits(const char *call, unsigned arg, uint32_t bits, char *buf, size_t len)
{
	size_t   n       = 0;
	uint32_t unnamed = 0;

	*buf = 0;
	if (policy_value_name(call, arg, bits)) {
		snprintf(buf, len, "%s", policy_value_name(call, arg, bits));
		return;
	}
	for (unsigned i = 0; i < 32; i++) {
		uint32_t    bit  = bits & (1u << i);
		const char *name = bit ? policy_value_name(call, arg, bit) : NULL;

		if (bit && !name)
			unnamed |= bit;
		else if (name && n < len)
			n += (size_t)snprintf(buf + n, len - n, "%s%s", n ? " " : "", name);
	}
	if (unnamed && n < len)
		snprintf(buf + n, len - n, "%s0x%x", n ? " " : "", unnamed);
}

int policy_errno_number(const char *name)
{
	if (strcmp(name, "ENOTSUP") == 0) /* the same number as EOPNOTSUPP, and the C library knows one name for each */
		return ENOTSUP;
	for (int i = 1; i < 134; i++)
		if (strerrorname_np(i) && strcmp(strerrorname_np(i), name) == 0)
			return i;
	return 0;
}

const char *policy_errno_name(int number)
{
	const char *name = strerrorname_np(number);

	return name ? name : "?";
}

uint64_t policy_value_digest(uint64_t seed)
{
	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		seed = (seed ^ values[i].value) * 0x100000001b3u;
	return seed;
}
