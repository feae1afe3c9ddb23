/*
 * refusal.h - who said no, and what to do about it.
 *
 * EPERM has a dozen authors. Pure: what was seen goes in, one layer and one
 * line of advice come out.
 *
 * The twin: a call that was refused is made once more with arguments that the
 * kernel itself answers with another errno (EINVAL, ENOENT) before it looks at
 * permissions. When the twin gets the same errno, the kernel never saw it: a
 * seccomp filter answered.
 */
#pragma once
#include "defs.h"

enum refuser {
#define REFUSER(id, words) REFUSER_##id,
#include "refusal.def"
#undef REFUSER
};

/* Where we run. Only the wording of advice depends on it. */
enum where {
	WHERE_PLAIN,
	WHERE_SERVICE, /* a systemd unit */
	WHERE_DOCKER,
	WHERE_PODMAN,
	WHERE_KUBERNETES,
	WHERE_NSPAWN,
	WHERE_LXC,
	WHERE_CONTAINER, /* of another kind */
	WHERE_WSL,
	WHERE_COUNT,
};

struct surroundings {
	enum where where;
	bool       is_root;
	bool       is_keeper;       /* the service's: not root, and to map ids that are not its own */
	bool       chrooted;
	int        seccomp;         /* 0 none, 1 strict, 2 filter, -1 unknown */
	int        userns_clone;    /* kernel.unprivileged_userns_clone (Debian); -1: no such sysctl */
	int        apparmor_userns; /* kernel.apparmor_restrict_unprivileged_userns (Ubuntu); -1: none */
	uint64_t   cap_eff, cap_bnd;
	unsigned   uid, gid;
	char       kernel[72];
	char       tag[32];         /* brig-doctor-PID-...: the name of everything that we create */
};

struct refusal {
	int         errnum;
	int         twin;    /* errno of the twin, 0 when there is none */
	uint64_t    caps;    /* capabilities that the kernel asks for, one bit each */
	bool        on_file; /* owner and mode of a file decide: EACCES is theirs */
	const char *limit;   /* sysctl behind ENOSPC, like "user.max_net_namespaces" */
	const char *config;  /* kernel option, like "CONFIG_NET_NS" */
	const char *since;   /* first kernel that has it, like "5.12" */
	const char *unit;    /* settings of a systemd unit without which its filter allows it */
};

enum refuser  refusal_by(const struct refusal *r, const struct surroundings *at);
const char *refuser_words(enum refuser by); /* "a seccomp filter that brig was started under" */

/* "EPERM (a seccomp filter that brig was started under)"; return buf */
char *refusal_cause(const struct refusal *r, enum refuser by, char *buf, size_t len);
char *refusal_fix(const struct refusal *r, enum refuser by, const struct surroundings *at, char *buf, size_t len);

const char *where_name(enum where where);
const char *where_unmask(enum where where);  /* how /proc gets complete here */
const char *where_writable(enum where where); /* how the cgroup tree becomes writable here */
