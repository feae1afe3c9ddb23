/*
 * tool.h - one row for each tool: its name, what a model reads about it, its arguments, its function.
 *
 * A tool has a file of its own (tool_NAME.c) that defines one struct tool;
 * tools.c lists them in the order in which clients see them, tool_list.c finds and describes them.
 */
#pragma once
#include "argument.h"
#include "call.h"

struct tool_texts;

struct tool {
	/* for models, which pay for each word: all of tools/list may have 1300 tokens */
	const char            *name, *title, *description;
	const char            *manual;       /* the same for the manual; NULL: as in description */
	const char            *with_sessions; /* appended to its description if there are sessions; NULL: nothing */
	/* appended to its description with --servers, after the names of these; NULL: nothing */
	const char            *with_servers;
	const struct argument *arguments;   /* rows end with a NULL name */
	const char            *input_schema; /* JSON text, instead of arguments; NULL: made from them */
	const char            *output_schema; /* JSON text; NULL: no structuredContent */
	bool                   read_only, destructive, idempotent, open_world;
	/* announced as read_only, too, unless a setting forbids it: what it changes is gone when the call ends */
	bool                   leaves_nothing;
	bool                   unbounded;   /* not limited by --max-calls and --calls-per-minute: it ends other calls */
	/* with --reply text it answers in words only, without outputSchema and structuredContent */
	bool                   text_only;
	/* its answer may be a question of a run; a call with requestState continues that run (call_resume_wait()) */
	bool                   resumes;
	bool                   brokered;    /* offered only with --servers */
	bool                   in_session;  /* offered only if there are sessions */
	bool                   unlisted;    /* callable; in tools/list only with --list-all-tools */
	/* arguments: an object, borrowed, lives as long as the call */
	void                 (*call)(struct call *c, const json_t *arguments);
	/* ends a call that is over a limit; NULL: with why as text, isError */
	void                 (*refuse)(struct call *c, const char *why);
};

extern const struct tool *const tools[]; /* tools.def; ends with NULL */

const struct tool *tool_find(const char *name);
/* As in tools/list; a new reference. */
json_t *tool_json(const struct tool *t, const struct mcp *m, const struct tool_texts *w, enum revision revision);

/* Is it offered, with these settings? */
bool               tool_is_offered(const struct tool *t, const struct mcp *m);
bool               tool_has_argument(const struct tool *t, const char *argument);
/* Does it take a session, so that a header may repeat its name? */
bool               tool_takes_session(const struct tool *t, const struct mcp *m);

/* The member "tools" of tools/list; made once, borrowed. NULL: memory is short. */
json_t *tools_list(struct mcp *m, enum revision revision);
void    tools_done(struct mcp *m);

/*
 * For a call that does not answer at once: sets its ->work, size bytes of zeros, and its ->cancel, which must free
 * it. NULL: memory is short, and the call was answered so.
 */
must_use void *tool_work_create(struct call *c, size_t size, void (*cancel)(struct call *));
/* Frees that work, and answers as tool_answer_text(). text: may belong to the work. */
void tool_end_work_with_text(struct call *c, const char *text, bool is_error);

/* Answers of a tools/call; each ends the call. `content`, `structured` and `data` are taken over. */
void tool_answer_text(struct call *c, const char *text, bool is_error);
/*
 * structured: an object or NULL; left out if the revision has no structuredContent. Blocks that the revision does not
 * know become text.
 */
void tool_answer_blocks(struct call *c, json_t *content, json_t *structured, bool is_error);
void tool_answer_data(struct call *c, json_t *data, bool is_error); /* as compact JSON text, and structured */
