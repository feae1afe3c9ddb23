/*
 * fuzz_secret_mask.c - replies that repeat secrets: none passes whole, however the reply is cut, and nothing else changes
 *
 * A byte that says how it is cut; up to three secrets, each ends with a NUL; the reply.
 */
#include "fuzz.h"
#include "secret.h"

static struct proxy_config config;

static void add_secret(const char *value)
{
	struct net_secret *s   = &config.secret[config.secrets];
	size_t             len = strlen(value);

	if (len == 0 || len + 7 >= sizeof s->value)
		return;
	*s = (struct net_secret){ .host = "shop.example", .port = 443, .header = "authorization", .secret_from = 7, .secret_len = (uint32_t)len };
	snprintf(s->value, sizeof s->value, "Bearer %s", value);
	config.secrets++;
}

static size_t mask(const uint8_t *data, size_t size, uint8_t how, char *ret)
{
	static struct secret_mask m;
	size_t                    len = 0;

	secret_mask_init(&m, &config, "shop.example", 443);
	for (size_t from = 0, n; from < size; from += n) {
		char *in, *out;

		n   = how % 2 ? 1 + (size_t)how / 2 : 1 + (size_t)data[from] * how / 64; /* even: also by the bytes themselves */
		n   = n < size - from ? n : size - from;
		in  = malloc(n);
		out = malloc(n + NET_SECRET_VALUE_MAX);
		must(in && out);
		memcpy(in, data + from, n);
		size_t made = secret_mask_step(&m, in, n, out);
		must(made <= n + NET_SECRET_VALUE_MAX && len + made <= size);
		must(len + made == (from + n < m.longest ? 0 : from + n - (m.longest - 1))); /* whatever the bytes are */
		memcpy(ret + len, out, made);
		len += made;
		free(in);
		free(out);
	}
	len += secret_mask_finish(&m, ret + len);
	return len;
}

static void find(const uint8_t *data, size_t size, bool *is_secret)
{
	for (size_t i = 0; i < size; i++)
		for (size_t k = 0; k < config.secrets; k++) {
			const struct net_secret *s = &config.secret[k];

			if (s->secret_len <= size - i && memcmp(data + i, s->value + 7, s->secret_len) == 0)
				memset(is_secret + i, true, s->secret_len);
		}
}

static void check(const uint8_t *data, size_t size, uint8_t how)
{
	char *ret       = malloc(size + NET_SECRET_VALUE_MAX);
	bool *is_secret = calloc(size + 1, sizeof *is_secret);

	must(ret && is_secret);
	must(mask(data, size, how, ret) == size);
	find(data, size, is_secret);
	for (size_t i = 0; i < size; i++)
		must(ret[i] == (is_secret[i] ? '*' : (char)data[i]));
	free(ret);
	free(is_secret);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t how = size ? *data : 0;

	if (size < 1 || size > 4096)
		return 0;
	data++;
	size--;
	config.secrets = 0;
	for (int i = 0; i < 3; i++) {
		char *value = take_text(&data, &size);

		add_secret(value);
		free(value);
	}
	must(secret_exists_for_host(&config, "shop.example", 443) == (config.secrets > 0) &&
	     !secret_exists_for_host(&config, "shop.example", 444));
	if (config.secrets && size)
		check(data, size, how);
	return 0;
}
