/*
 * name_service.c - what a static program has in the place of the C library's name services.
 *
 * In a static program these functions of glibc load modules of the host (NSS), which another release of glibc, or
 * another distribution, made for itself: it may crash, and where there is none it finds no user at all. Here accounts
 * are those of /etc/passwd and /etc/group. Nothing else is looked up or loaded: brig-proxy and brig-mcp-remote resolve
 * names with c-ares. The others are called by no run, but libraries name them. --fatal-warnings of the linker finds one
 * that is missing here.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <netdb.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* A line "+NAME" asks NIS. */
static bool is_account_name(const char *name)
{
	return *name && *name != '+' && *name != '-';
}

static bool is_user(const struct passwd *entry, const char *name, uid_t uid)
{
	return is_account_name(entry->pw_name) && (name ? strcmp(entry->pw_name, name) == 0 : entry->pw_uid == uid);
}

static bool is_group(const struct group *entry, const char *name, gid_t gid)
{
	return is_account_name(entry->gr_name) && (name ? strcmp(entry->gr_name, name) == 0 : entry->gr_gid == gid);
}

static struct passwd *find_user(const char *name, uid_t uid)
{
	FILE          *file  = fopen("/etc/passwd", "re");
	struct passwd *entry = NULL;

	while (file && (entry = fgetpwent(file)) && !is_user(entry, name, uid))
		;
	if (file)
		fclose(file);
	return entry;
}

static struct group *find_group(const char *name, gid_t gid)
{
	FILE         *file  = fopen("/etc/group", "re");
	struct group *entry = NULL;

	while (file && (entry = fgetgrent(file)) && !is_group(entry, name, gid))
		;
	if (file)
		fclose(file);
	return entry;
}

struct passwd *getpwnam(const char *name)
{
	return find_user(name, 0);
}

struct passwd *getpwuid(uid_t uid)
{
	return find_user(NULL, uid);
}

struct group *getgrnam(const char *name)
{
	return find_group(name, 0);
}

struct group *getgrgid(gid_t gid)
{
	return find_group(NULL, gid);
}

/* Of libcgroup's parser of its configuration files, which no run calls. */
int getpwnam_r(const char *restrict name, struct passwd *restrict entry, char *restrict buf, size_t len,
	       struct passwd **restrict ret)
{
	(void)name, (void)entry, (void)buf, (void)len;
	*ret = NULL;
	return ENOSYS;
}

int getgrnam_r(const char *restrict name, struct group *restrict entry, char *restrict buf, size_t len,
	       struct group **restrict ret)
{
	(void)name, (void)entry, (void)buf, (void)len;
	*ret = NULL;
	return ENOSYS;
}

/* --- hosts --- */

int getaddrinfo(const char *restrict name, const char *restrict service, const struct addrinfo *restrict hints,
		struct addrinfo **restrict ret)
{
	(void)name, (void)service, (void)hints;
	*ret = NULL;
	return EAI_FAIL;
}

void freeaddrinfo(struct addrinfo *list)
{
	(void)list;
}

int getnameinfo(const struct sockaddr *restrict at, socklen_t at_len, char *restrict host, socklen_t host_len,
		char *restrict service, socklen_t service_len, int flags)
{
	(void)at, (void)at_len, (void)host, (void)host_len, (void)service, (void)service_len, (void)flags;
	return EAI_FAIL;
}

struct hostent *gethostbyname(const char *name)
{
	(void)name;
	h_errno = NO_RECOVERY;
	return NULL;
}

struct protoent *getprotobyname(const char *name)
{
	(void)name;
	return NULL;
}

struct protoent *getprotobynumber(int number)
{
	(void)number;
	return NULL;
}

struct servent *getservbyname(const char *name, const char *protocol)
{
	(void)name, (void)protocol;
	return NULL;
}

struct servent *getservbyport(int port, const char *protocol)
{
	(void)port, (void)protocol;
	return NULL;
}

int getservbyport_r(int port, const char *restrict protocol, struct servent *restrict entry, char *restrict buf,
		    size_t len, struct servent **restrict ret)
{
	(void)port, (void)protocol, (void)entry, (void)buf, (void)len;
	*ret = NULL;
	return ENOENT;
}

/* --- code --- */

void *__wrap_dlopen(const char *file, int mode);

/* The linker's --wrap=dlopen puts it in the place of dlopen(), which every static glibc has for its own use. */
void *__wrap_dlopen(const char *file, int mode)
{
	(void)file, (void)mode;
	return NULL;
}

void *dlsym(void *restrict handle, const char *restrict name)
{
	(void)handle, (void)name;
	return NULL;
}

int dlclose(void *handle)
{
	(void)handle;
	return -1;
}

int dladdr(const void *at, Dl_info *ret)
{
	(void)at, (void)ret;
	return 0;
}

char *dlerror(void)
{
	static char text[] = "this program is static: it loads no code";

	return text;
}
