/*
 * yes_form.h - a question to a person with yes and no, as a form of MCP (elicitation).
 */
#pragma once
#include <jansson.h>
#include <stdbool.h>

/* Params of elicitation/create; the preset is no. text: plain. */
json_t *yes_form_to_json(const char *text, const char *title);
/* response: the result that a client sends. To decline, to cancel, and what is no answer are no. */
bool    yes_form_says_yes(const json_t *response);
