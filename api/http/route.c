#include "route.h"

#include "own_page.h"
#include "spelling.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
const struct route routes[] = {
	{ "GET",    "/healthz",             INTERFACE_NONE,     ROUTE_OPEN,  page_health,        "health" },
	{ "GET",    "/metrics",             INTERFACE_NONE,     ROUTE_TOKEN, page_metrics,       "metrics" },
	{ "GET",    "/openapi.json",        INTERFACE_NONE,     ROUTE_OPEN,  page_openapi,       "openapi" },

	{ "POST",   "/run_code",            INTERFACE_run_code, ROUTE_TOKEN, fusion_run_code,    "run_code" },
	{ "POST",   "/run_jupyter",         INTERFACE_run_code, ROUTE_TOKEN, fusion_run_jupyter, "run_jupyter" },
	{ "GET",    "/v1/ping",             INTERFACE_run_code, ROUTE_TOKEN, fusion_ping,        "ping" },

	{ "POST",   "/execute",             INTERFACE_nemo,     ROUTE_TOKEN, nemo_execute,       "execute" },
	{ "GET",    "/sessions",            INTERFACE_nemo,     ROUTE_TOKEN, nemo_list,          "sessions" },
	{ "DELETE", "/sessions/{id}",       INTERFACE_nemo,     ROUTE_TOKEN, nemo_delete,        "session_delete" },
	{ "GET",    "/health",              INTERFACE_nemo,     ROUTE_OPEN,  nemo_health,        "nemo_health" },

	{ "GET",    "/api/v2/runtimes",     INTERFACE_piston,   ROUTE_TOKEN, piston_runtimes,    "piston_runtimes" },
	{ "POST",   "/api/v2/execute",      INTERFACE_piston,   ROUTE_TOKEN, piston_execute,     "piston_execute" },

	{ "POST",   "/submissions",         INTERFACE_judge0,   ROUTE_TOKEN, judge0_submit,      "submit" },
	{ "GET",    "/submissions/{token}", INTERFACE_judge0,   ROUTE_TOKEN, judge0_get,         "submission" },
	{ "DELETE", "/submissions/{token}", INTERFACE_judge0,   ROUTE_TOKEN, judge0_delete,      "submission_delete" },
	{ "POST",   "/submissions/batch",   INTERFACE_judge0,   ROUTE_TOKEN, judge0_submit_all,  "submit_batch" },
	{ "GET",    "/submissions/batch",   INTERFACE_judge0,   ROUTE_TOKEN, judge0_get_all,     "submission_batch" },
	{ "GET",    "/languages",           INTERFACE_judge0,   ROUTE_TOKEN, judge0_languages,   "languages" },
	{ "GET",    "/languages/{id}",      INTERFACE_judge0,   ROUTE_TOKEN, judge0_language,    "language" },
	{ "GET",    "/statuses",            INTERFACE_judge0,   ROUTE_TOKEN, judge0_statuses,    "statuses" },
	{ "GET",    "/config_info",         INTERFACE_judge0,   ROUTE_TOKEN, judge0_config,      "config_info" },
	{ "GET",    "/about",               INTERFACE_judge0,   ROUTE_TOKEN, judge0_about,       "about" },
	{ 0 },
};
/* clang-format on */

/* The rest of path that {...} stands for, "" for a path without it; NULL: it does not match. */
static const char *route_match(const struct route *r, const char *path)
{
	const char *brace = strchr(r->path, '{');
	size_t      n     = brace ? (size_t)(brace - r->path) : strlen(r->path);

	if (strncmp(r->path, path, n) != 0)
		return NULL;
	if (!brace)
		return path[n] ? NULL : "";
	return path[n] && !strchr(path + n, '/') ? path + n : NULL;
}

static bool method_matches(const char *of_route, const char *method)
{
	return strcmp(of_route, method) == 0 || (strcmp(of_route, "GET") == 0 && strcmp(method, "HEAD") == 0);
}

/* Rows without {...} go first, wherever they are. */
const struct route *route_find(const char *method, const char *path, interface_set served, const char **argument,
			       char *allow, size_t allow_len)
{
	const struct route *found = NULL;
	size_t              n     = 0;

	*argument = "";
	*allow    = 0;
	for (const struct route *r = routes; r->method; r++) {
		const char *rest = r->api == INTERFACE_NONE || interface_set_has(served, r->api) ? route_match(r, path)
												 : NULL;

		if (!rest)
			continue;
		if (n < allow_len && !strstr(allow, r->method))
			n += (size_t)snprintf(allow + n, allow_len - n, "%s%s", n ? ", " : "", r->method);
		if (!method_matches(r->method, method) || (found && *rest))
			continue;
		found     = r;
		*argument = rest;
	}
	return found;
}
