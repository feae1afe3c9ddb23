/*
 * session_note.h - what a call found in its session and what it leaves there, in a sentence for a model. Pure.
 */
#pragma once
#include "outcome.h"

/*
 * Sets o->session_state by its record, and writes the note; "": there is nothing to note. lost: why an earlier session
 * of this name is gone, or "". stopped: the client has cancelled the call.
 */
void session_note_fill(struct outcome *o, const char *lost, bool stopped);
