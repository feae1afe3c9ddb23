/* fuzz_bridge_line.c - what a program says on its bridge: a request with all that its op has, or a reason; and what it is answered fits into a line */
#include "bridge_line.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped_bridge_request r;
	struct err            e       = { 0 };
	enum tool_outcome     outcome = TOOL_OUTCOME_ok;
	size_t                len     = 0;
	char                 *line;

	if (bridge_request_parse(&r, (const char *)data, size, &e) < 0) {
		must(*e.text);
		return 0;
	}
	must(size <= BRIDGE_LINE_MAX && r.id > 0 && r.op < BRIDGE_OPS && r.text && r.max <= BRIDGE_FOUND_MAX);
	must(r.op != BRIDGE_CALL || json_is_object(r.args));
	line = bridge_dump_line(r.id, bridge_answer_body("result", json_incref(r.source)), &len, &outcome);
	must(line && len < BRIDGE_LINE_MAX && !memchr(line, '\n', len));
	free(line);
	return 0;
}
