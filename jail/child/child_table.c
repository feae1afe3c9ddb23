/* child_table.c - the tables by their numbers; tests link tables with a row that fails in its place */
#include "child.h"

const struct child_step *const child_tables[] = {
	[CHILD_CELL]    = child_cell_steps,
	[CHILD_PROGRAM] = child_program_steps,
	[CHILD_ENTER]   = child_enter_steps,
	[CHILD_ZYGOTE]  = child_zygote_steps,
};
