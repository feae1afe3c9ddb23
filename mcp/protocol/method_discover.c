/* method_discover.c - server/discover, which a modern client may call first, or never */
#include "method.h"
#include "server_info.h"

json_t *make_discover_result(const struct call *c)
{
	return json_pack("{so so so si ss}", "supportedVersions", server_supported_versions_json(), "capabilities",
			 server_capabilities_json(), "instructions", server_instructions_json(c->mcp),
			 "ttlMs", 3600000, "cacheScope",
			 "public");
}

void method_discover(struct call *c)
{
	call_answer_result(c, make_discover_result(c));
}
