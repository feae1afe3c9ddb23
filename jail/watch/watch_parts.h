/* watch_parts.h - what the two files of a watch know of each other */
#pragma once
#include "watch.h"

/* The program runs from now on. */
void watch_begin(struct watch *w);
/* Of a session that has no memory: the process with most memory of its own is killed, or the youngest, if files are why. False: there is none but the two that hold it together. */
must_use bool watch_kill_victim(struct watch *w);
/* One message of PID 1. */
void watch_hear_cell(struct watch *w);
/* One message of the fork. */
void watch_hear_fork(struct watch *w);
/* The cell waits for its order: said to who gives it. */
void watch_say_ready(struct watch *w);

/* watch_warm.c: what happened, in the order of a run's life */
void watch_warm_prepared(struct watch *w, const int *fds, size_t n);
void watch_warm_hard(struct watch *w);
void watch_warm_stands(struct watch *w);
void watch_warm_begins(struct watch *w);
void watch_warm_ordered(struct watch *w);
void watch_warm_read(struct watch *w);
void watch_warm_hear(struct watch *w);
void watch_warm_program(struct watch *w);
/* For how long (ms) the fork server may be silent. */
double watch_warm_patience(struct watch *w, double now);
