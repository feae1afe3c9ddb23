/* check_report.h - the output of brig check: a line for each finding, or all of them as JSON */
#pragma once
#include "foreground_run.h"

/* Returns brig's exit status: 0: the program is valid, 1: it is not, 125: it could not be checked. */
int check_report(const struct foreground_run *c);
