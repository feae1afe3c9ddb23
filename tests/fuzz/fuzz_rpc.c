/* fuzz_rpc.c - any bytes as a JSON-RPC message: what is refused gets an error that a client can read, and the id of who asked */
#include "fuzz.h"
#include "rpc.h"

static void must_be_an_answer(const json_t *id, struct rpc_error *e)
{
	json_t *failure = rpc_failure(id, e), *read;
	size_t  len     = 0;
	char   *text    = rpc_dump_to_send(failure, &len);

	must(text && len < 8192 + (json_is_string(id) ? 7 * json_string_length(id) : 0) && !memchr(text, '\n', len));
	read = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	must_about(text, read && json_equal(read, failure));
	json_decref(read);
	json_decref(failure);
	free(text);
}

static void must_be_refused_well(const struct rpc_message *m, struct rpc_error *e)
{
	must(e->code == RPC_PARSE_ERROR || e->code == RPC_INVALID_REQUEST || e->code == RPC_INVALID_PARAMS);
	must_about(e->text, *e->text && text_is_utf8(e->text, strlen(e->text)) && !text_has_control(e->text));
	must(!m->id || json_is_string(m->id) || json_is_integer(m->id));
	must(e->code != RPC_PARSE_ERROR || !m->id);
	must_be_an_answer(m->id, e);
}

static void must_hold(const struct rpc_message *m)
{
	must((m->kind == RPC_NOTIFICATION) == !m->id);
	must((m->kind == RPC_RESPONSE) == !m->method);
	must(!m->id || json_is_string(m->id) || json_is_integer(m->id));
	must(!m->method || *m->method);
	must(!m->params || json_is_object(m->params));
	must((m->kind == RPC_RESPONSE) == (!m->result != !m->error));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped_rpc       m;
	struct rpc_error e;

	if (rpc_parse(&m, data, size, &e) < 0)
		must_be_refused_well(&m, &e);
	else
		must_hold(&m);
	return 0;
}
