/*
 * own_page.h - the pages of brig-api's own: whether it serves, its figures, its description.
 */
#pragma once

struct exchange;

void page_health(struct exchange *x);
void page_metrics(struct exchange *x);
void page_openapi(struct exchange *x);
