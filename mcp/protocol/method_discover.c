/* method_discover.c - server/discover, which a modern client may call first, or never */
#include "method.h"
#include "server_info.h"

json_t *discover_result(const struct call *c)
{
	return json_pack("{so so so si ss}", "supportedVersions", self_supported_versions(), "capabilities",
			 self_capabilities(), "instructions", self_instructions(c->mcp), "ttlMs", 3600000, "cacheScope",
			 "public");
}

void method_discover(struct call *c)
{
	call_answer_result(c, discover_result(c));
}
