/* child_table.h - the tables of set-up steps, as brig explain prints them */
#pragma once

enum child_table { CHILD_CELL, CHILD_PROGRAM, CHILD_ENTER, CHILD_ZYGOTE };

/* "3 mounts: ...": the steps in order, NULL at the end. */
const char *child_step_name(enum child_table table, unsigned step);
const char *child_step_reason(enum child_table table, unsigned step);
