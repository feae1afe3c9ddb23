/* check_report.h - what brig check says: a line for each finding, or all of it as JSON */
#pragma once
#include "run_client.h"

/* 0: valid, 1: it is not, 125: it could not be checked. */
int check_report(const struct run_client *c);
