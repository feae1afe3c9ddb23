#include "own_page.h"

#include "api_session.h"
#include "exchange.h"
#include "exposition.h"
#include "openapi.h"

#include <stdlib.h>

void page_health(struct exchange *x)
{
	if (x->api->drains)
		exchange_answer(x, 503, json_pack("{ss}", "status", "stopping"));
	else
		exchange_answer(x, 200, json_pack("{ss}", "status", "ok"));
}

void page_metrics(struct exchange *x)
{
	struct api *a    = x->api;
	char       *text = NULL;
	size_t      len;
	FILE       *out = open_memstream(&text, &len);

	if (out) {
		api_metrics_print(&a->metrics, a->n_under_way, a->n_waiting, api_session_count(a, NULL), out);
		(void)fclose(out);
	}
	exchange_answer_text(x, 200, EXPOSITION_TYPE, text ? text : "");
	free(text);
}

void page_openapi(struct exchange *x)
{
	exchange_answer(x, 200, openapi_to_json(x->api->routes, x->api->settings->interfaces));
}
