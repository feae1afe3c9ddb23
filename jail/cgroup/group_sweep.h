/*
 * group_sweep.h - groups that nobody answers for any more.
 *
 * When brig and its launcher are killed at the same moment, every process of
 * the cell dies, and its control groups stay behind, empty: no process is left
 * that could remove them. So each launcher removes what others left.
 */
#pragma once
#include "group.h"
#include "slot.h"

/* Those beside our own whose slot nobody holds. What cannot be removed stays for the next. */
void group_sweep(const struct group *g, const struct slot *own, const char *runtime_dir);
/* The same in a parent that is kept. own: NULL when no other process has leaves there. */
void group_parent_sweep(const struct group_parent *parent, const struct slot *own);
