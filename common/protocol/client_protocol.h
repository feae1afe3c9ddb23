/*
 * client_protocol.h - the messages between a client and the server, version 1.
 *
 * A message is a datagram with one JSON object, and descriptors beside it
 * (brig-protocol(7)). Pure: requests are parsed from bytes and the number of
 * descriptors, answers are made as JSON and checked from bytes; nothing here
 * uses a socket.
 *
 * The members of a request are borrowed from its JSON `source`, which
 * protocol_request_done() frees.
 */
#pragma once
#include "denial.h"
#include "field_json.h"
#include "json_text.h"
#include "wire.h"

enum {
	PROTOCOL_VERSION  = 1,
	PROTOCOL_MAX      = WIRE_MAX, /* bytes of one message, in each direction */
	PROTOCOL_ARGS_MAX = 1024,
	PROTOCOL_ENV_MAX  = 64,
	PROTOCOL_RO_MAX   = 16,
	PROTOCOL_MAIN_MAX = 1024, /* bytes of main, and of cwd */
	PROTOCOL_FDS_MAX  = 2 + PROTOCOL_RO_MAX,
	PROTOCOL_LIST_MAX = 200, /* runs in one reply */
	PROTOCOL_IMPORTS_MAX = 512,
	PROTOCOL_NETWORK_MAX = 64, /* hosts that a run asks for */
	PROTOCOL_PACKAGES_MAX = 512, /* lines of requirements */
	PROTOCOL_CALLS_MAX = 64, /* of tools, in one message */
	PROTOCOL_SESSIONS_MAX = 100, /* sessions in one reply */
	PROTOCOL_SIDE_MAX = 9999, /* rows, and columns, of a terminal */
	PROTOCOL_NAME_MAX = 64,  /* bytes, of a session or a context */
	PROTOCOL_LIFETIME_LEAST = 1000, /* ms, as in limits.def */
	RUN_ID_LEN        = 36,
};

#define PROTOCOL_CODE_MAX (8 * MIB) /* bytes of a program */
#define PROTOCOL_WAIT_MAX (60 * 60 * 1000) /* ms */
#define PROTOCOL_LIFETIME_MAX 2592000000 /* ms, as in limits.def */
#define TAG_MAX           ((1ull << 53) - 1) /* the largest integer that JSON libraries with doubles hold exactly */
#define TAG_NONE          UINT64_MAX

enum request_kind {
#define REQUEST(name, ...) REQUEST_##name,
#include "client_protocol.def"
	REQUEST_COUNT,
};

enum event_kind {
#define EVENT(name, doc) EVENT_##name,
#include "client_protocol.def"
	EVENT_COUNT,
};

/* Which descriptors belong to a request. */
enum request_fds {
	FDS_NONE,
	FDS_RO,          /* one for each name in ro, the directory of a layer if it has one, then the socket for files, if the request has files */
	FDS_CODE_AND_RO, /* the program's text, then those of FDS_RO */
};

/* What executes the program of a run. */
enum run_mode {
	MODE_script, /* the interpreter */
	MODE_report, /* the guest runner, which reports the program's result */
	MODE_check,  /* the guest runner, which reads the program and does not execute it */
	MODE_resolve, /* the guest runner, which finds packages for the program and does not execute it */
};

enum cancel_reason { CANCEL_cancelled, CANCEL_output_limit };

/* The keys of all requests. Those that a kind does not have are 0 or NULL, except profile, which is "basic", and context. */
struct protocol_request {
	enum request_kind kind;
	const char       *op;  /* the kind's name, as received */
	uint64_t          tag; /* TAG_NONE: none */
	uint64_t          version;
	const char       *profile;
	const json_t     *limits; /* an object for limits_fields, or NULL */
	const char       *main;   /* a path below a name of ro, or NULL */
	const char       *cwd;    /* a path in the jail, or NULL: /workspace */
	const json_t     *args, *argv, *env, *ro; /* lists of texts, or NULL */
	bool              wants_stdin, cold, has_files, has_tools;
	bool              is_waiting; /* a call of a tool is taking long */
	const json_t     *calls;      /* a list of objects for protocol_call_fields, or NULL */
	uint64_t          wait_ms;
	const json_t     *allow_missing; /* a list of texts, or NULL */
	unsigned          mode;    /* enum run_mode */
	const json_t     *network; /* a list of texts, or NULL: as the profile says */
	const json_t     *imports; /* a list of names of modules, or NULL: any */
	const json_t     *packages; /* lines of requirements, or NULL */
	const char       *index;   /* an address, or NULL */
	bool              has_layer;
	const char       *run;
	unsigned          reason; /* enum cancel_reason */
	const char       *session; /* an id or a name, or NULL: none */
	const char       *principal; /* for whom the client asks, or NULL */
	const char       *context, *name; /* names; context is "main" by default, name may be NULL */
	bool              stays, detach;
	bool              terminal; /* open: calls may have one; exec: this call has one */
	uint64_t          rows, columns;
	uint64_t          lifetime_ms; /* from now on */
	json_t           *source;
	/* The descriptors that came with it, where the receiver puts them here: a function that keeps one takes it (fd_take()). */
	int              *fd;
	size_t            fds;
	/* Of the connection: answers and reports may have keys that clients of earlier releases refuse. */
	bool              takes_additions;
};

/* One call of a tool, as the client reports it. */
struct protocol_call {
	const char *name, *verdict, *args_sha256;
};
extern const struct field protocol_call_fields[];

/*
 * fds: how many descriptors came with the bytes. *ret must be freed on failure, too: it then has op and tag as far as they
 * could be read, and the source if the bytes were JSON.
 */
must_use int protocol_parse(struct protocol_request *ret, const void *bytes, size_t len, size_t fds, struct denial *d);
void         protocol_request_done(struct protocol_request *r);
#define scoped_request scoped(protocol_request_done) struct protocol_request

const char *run_mode_name(enum run_mode mode);

/* Whether a session or a context can have this name. A UUID is none: it would look like the id of a session. */
bool protocol_is_name(const char *text);

/*
 * May a directory or file be shown as /workspace/NAME? NAME must be one component without control characters, not main.py, which is the
 * program, and none of the first n of before, a list of texts. -1 with *e: why not.
 */
must_use int protocol_check_ro_name(const json_t *before, size_t n, const char *name, struct err *e);

/* A hello with a version: answers and reports then have the keys that later releases have added (brig-protocol(7), VERSIONS). A new reference. */
json_t *protocol_hello_request(void);

/* --- answers: new references; tag TAG_NONE is left out --- */

json_t *protocol_reply(enum request_kind to, uint64_t tag); /* the caller adds the other keys of reply_shape() */
json_t *protocol_error(const struct denial *d, uint64_t tag);
void    protocol_error_put_facts(json_t *error, const struct denial *d); /* index and reason; see brig-protocol(7), VERSIONS */
json_t *protocol_waiting_event(const char *run, uint64_t tag, const char *why);
json_t *protocol_opened_event(const char *session, uint64_t tag, const char *name, uint64_t idle_ms, uint64_t lifetime_ms);
json_t *protocol_limit_event(const char *run, uint64_t tag, const char *name, uint64_t value, bool ends);

/* Events of every run, written as text. exec_error and left may be NULL; record and lost are JSON. */
void protocol_put_started(struct json_text *t, const char *run, uint64_t tag, bool with_stdin, bool with_result, bool with_tools,
			  uint64_t output_bytes);
void protocol_put_ended(struct json_text *t, const char *run, uint64_t tag, const char *record, const char *exec_error, const char *lost,
			const char *left);

/* For clients and tests. */
enum answer_kind { ANSWER_REPLY, ANSWER_EVENT, ANSWER_ERROR };

struct protocol_answer {
	enum answer_kind  kind;
	enum request_kind reply;
	enum event_kind   event;
	json_t           *source; /* has every key of its shape and no other */
};
must_use int protocol_parse_answer(struct protocol_answer *ret, const void *bytes, size_t len, size_t fds, struct err *e);
void         protocol_answer_done(struct protocol_answer *a);
#define scoped_answer scoped(protocol_answer_done) struct protocol_answer

/* --- for the manual and the fuzzer --- */

const char         *request_name(enum request_kind kind);
const char         *request_doc(enum request_kind kind);
const char         *request_fds_text(enum request_kind kind); /* "code, then one for each name in ro" */
const char         *request_required_key(enum request_kind kind); /* the key that has no preset, or NULL */
const struct field *request_fields(enum request_kind kind);
const struct shape *reply_shape(enum request_kind kind); /* NULL: answered by events */
const char         *event_name(enum event_kind kind);
const char         *event_doc(enum event_kind kind);
const struct shape *event_shape(enum event_kind kind);
const struct shape *error_shape(void);
