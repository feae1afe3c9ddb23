/*
 * exec_env.h - the environment for a program of brig's own
 *
 * brig may have a right that its caller lacks (an AppArmor profile that allows user namespaces), and what it executes inherits it.
 * A dynamic program would load the caller's code before its main().
 */
#pragma once

/* This process's environment without the variables that name code to load. The array is the caller's to free; NULL: no memory. */
char **exec_env_filtered(void);
