/*
 * session_words.h - what a call has found in its session and what it leaves there, in words that a model understands. Pure.
 */
#pragma once
#include "outcome.h"

/*
 * lost: why an earlier session of this name is gone, or ""; stopped: the client has ended the call. Sets o->session_state by its record, and
 * writes the note; "": nothing is to be said.
 */
void session_words(struct outcome *o, const char *lost, bool stopped);
