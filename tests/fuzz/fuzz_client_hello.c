/* fuzz_client_hello.c - the first bytes to a TLS server: a name is canonical, and more bytes change no answer. The first two say where they are cut */
#include "client_hello.h"
#include "fuzz.h"

static enum hello_outcome parse(const uint8_t *bytes, size_t len, struct client_hello *ret)
{
	uint8_t           *exact = malloc(len + !len); /* a step too far is seen */
	enum hello_outcome o;

	must(exact);
	memcpy(exact, bytes, len);
	memset(ret, 0, sizeof *ret);
	o = client_hello_parse(exact, len, ret);
	free(exact);
	return o;
}

static void must_be_sound(const struct client_hello *h)
{
	char canonical[NET_HOST_MAX];
	bool is_address;

	if (h->has_sni)
		must_about(h->sni, net_host_canonicalize(h->sni, strlen(h->sni), canonical, &is_address) &&
			   !is_address && strcmp(h->sni, canonical) == 0);
	else
		must(h->sni[0] == 0);
	must(h->has_alpn || h->offers_http1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct client_hello whole, begun;
	enum hello_outcome  o, early;
	size_t              cut;

	if (size < 2)
		return 0;
	cut = (size_t)(data[0] << 8 | data[1]) % (size - 1);
	o   = parse(data + 2, size - 2, &whole);
	if (o == HELLO_DONE)
		must_be_sound(&whole);
	must(o != HELLO_MORE || size - 2 < CLIENT_HELLO_MAX);
	early = parse(data + 2, cut, &begun);
	must(early == HELLO_MORE || early == o);
	if (early == HELLO_DONE)
		must(strcmp(begun.sni, whole.sni) == 0 && begun.has_sni == whole.has_sni && begun.has_ech == whole.has_ech);
	return 0;
}
