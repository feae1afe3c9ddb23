/* child_table.h - the tables of set-up steps, as brig explain prints them */
#pragma once

enum child_table { CHILD_CELL, CHILD_PROGRAM, CHILD_ENTER, CHILD_ZYGOTE };

/* One row of a table; NULL after the last one. */
const char *child_step_name(enum child_table table, unsigned step);
const char *child_step_reason(enum child_table table, unsigned step);
