/* fuzz_socks.c - a greeting and a request of SOCKS5: lengths are of what is there, and more bytes change no answer. The first two say where they are cut */
#include "fuzz.h"
#include "socks.h"

static void check_greeting(const uint8_t *bytes, size_t have, size_t cut)
{
	size_t             whole = 0, begun = 0;
	enum socks_outcome o = socks_greeting_parse(bytes, have, &whole), early = socks_greeting_parse(bytes, cut, &begun);

	must(o != SOCKS_DONE || (whole >= 3 && whole <= have && memchr(bytes + 2, 0, whole - 2)));
	must(o != SOCKS_MORE || have < SOCKS_MAX);
	must(early == SOCKS_MORE || (early == o && begun == whole));
}

static void check_request(const uint8_t *bytes, size_t have, size_t cut)
{
	struct socks_request whole = { 0 }, begun = { 0 };
	enum socks_outcome   o = socks_request_parse(bytes, have, &whole), early = socks_request_parse(bytes, cut, &begun);
	char                 host[NET_HOST_MAX];
	bool                 is_address;

	must(o != SOCKS_MORE || have < SOCKS_MAX);
	must(early == SOCKS_MORE || early == o);
	if (o != SOCKS_DONE)
		return;
	must(whole.len >= 8 && whole.len <= have && whole.host_len > 0 && whole.host_len <= 255);
	must(early != SOCKS_DONE || (begun.len == whole.len && memcmp(begun.host, whole.host, whole.host_len) == 0));
	(void)net_host_canonicalize(whole.host, whole.host_len, host, &is_address);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t   cut, len = size < 2 ? 0 : size - 2;
	uint8_t *exact;
	char     reply[SOCKS_REPLY_MAX];

	if (size < 2)
		return 0;
	exact = malloc(len + !len);
	must(exact);
	memcpy(exact, data + 2, len);
	cut = (size_t)(data[0] << 8 | data[1]) % (len + 1);
	check_greeting(exact, len, cut);
	check_request(exact, len, cut);
	must(socks_print_refusal(data[0] % NET_REASONS, reply) == sizeof reply && socks_print_success(reply) == sizeof reply);
	free(exact);
	return 0;
}
