/*
 * files.h - files that a run's client puts into /workspace before the run, and gets from there after it
 *
 * A helper process reads the client's socket (file_stream.h), and nothing else of brig does. It has the program's id,
 * no capability and the program's system call filter, and reaches /workspace by a descriptor of it, without following
 * a link. What it writes there is counted for the cell. It fills /workspace before the program is started, and sends
 * what was asked for when every process of the cell is dead.
 *
 *   FILLS -> WAITS -> SENDS -> NONE
 */
#pragma once
#include "cell.h"

enum files_state { FILES_NONE, FILES_FILLS, FILES_WAITS, FILES_SENDS };

struct files {
	enum files_state state;
	int              sock;  /* to the helper; -1: there is none */
	int              pidfd;
};
#define FILES_INIT ((struct files){ .sock = -1, .pidfd = -1 })

/* Starts the helper, which waits for /workspace. client: borrowed. The caller may take any id of the cell. */
must_use int files_fork_helper(struct files *f, int client, const struct cell *c, const struct cell_spec *spec,
			 struct err *e);
/* Sends the helper dir, which is /workspace of the prepared cell; borrowed. */
void files_send_workspace_fd(struct files *f, int dir);

/* sock can be read. */
enum files_answer { FILES_GO_ON, FILES_FILLED, FILES_FAILED, FILES_DONE };
enum files_answer files_receive_answer(struct files *f, struct err *e);

/* The cell is dead. True: the helper sends files now. False: it is closed; a program that never ran left no files. */
must_use bool files_start_sending(struct files *f, bool has_run);
/* Kills the helper. */
void          files_close(struct files *f);

/* How long the helper may send at most. */
enum { FILES_SEND_MS_MAX = 60000 };
