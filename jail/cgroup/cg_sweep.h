/*
 * cg_sweep.h - leaves that ended launchers have left behind.
 *
 * When brig and its launcher are killed at the same moment, every process of
 * the cell dies, and its control groups stay behind, empty: no process is left
 * that could remove them. So each launcher removes what others left.
 */
#pragma once
#include "cg.h"
#include "slot.h"

/*
 * Removes the leaves beside our own whose slot is not locked. What cannot be removed stays for the next launcher.
 * Other slots are locked through the descriptor of own.
 */
void cg_sweep_leftovers(const struct cg *g, const struct slot *own, const char *runtime_dir);
/* The same in an open parent. own: NULL when no other process has leaves there, so that all of them are removed. */
void cg_parent_sweep_leftovers(const struct cg_parent *parent, const struct slot *own);
