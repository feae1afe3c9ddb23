/*
 * spelling.h - the interfaces: each reads a request into a program, and writes an outcome in its own words.
 */
#pragma once
#include "exchange.h"
#include "program.h"

/* SandboxFusion */
void fusion_run_code(struct exchange *x);
void fusion_run_jupyter(struct exchange *x);
void fusion_ping(struct exchange *x);

/* NeMo-Skills */
void nemo_execute(struct exchange *x);
void nemo_list(struct exchange *x);
void nemo_delete(struct exchange *x);
void nemo_health(struct exchange *x);

/* Piston */
void piston_runtimes(struct exchange *x);
void piston_execute(struct exchange *x);

/* Judge0 */
void judge0_submit(struct exchange *x);
void judge0_submit_all(struct exchange *x);
void judge0_get(struct exchange *x);
void judge0_get_all(struct exchange *x);
void judge0_delete(struct exchange *x);
void judge0_languages(struct exchange *x);
void judge0_language(struct exchange *x);
void judge0_statuses(struct exchange *x);
void judge0_config(struct exchange *x);
void judge0_about(struct exchange *x);
