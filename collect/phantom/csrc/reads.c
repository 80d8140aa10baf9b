/* Makes deferred values before a system call reads or writes their memory. The operating system's kernel does not stop
 * at a deferred range as a thread does: the call would fail with EFAULT. This file wraps the functions of libc that
 * pass an address on to the kernel without reading its memory. */
#include "deferred.h"
#include "phantom.h"

#include <dlfcn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#define DOOR(TYPE, NAME, PARAMETERS, ARGUMENTS, ADDRESS, BYTES)                          \
    PHANTOM_API TYPE NAME PARAMETERS {                                                   \
        static TYPE(*real) PARAMETERS;                                                   \
        if (!real)                                                                       \
            real = (TYPE(*) PARAMETERS)dlsym(RTLD_NEXT, #NAME);                          \
        phantom_make_now(ADDRESS, BYTES);                                                \
        return real ARGUMENTS;                                                           \
    }

DOOR(ssize_t, write, (int f, const void *p, size_t n), (f, p, n), p, n)
DOOR(ssize_t, pwrite, (int f, const void *p, size_t n, off_t at), (f, p, n, at), p, n)
DOOR(ssize_t, pwrite64, (int f, const void *p, size_t n, off_t at), (f, p, n, at), p, n)
DOOR(ssize_t, send, (int f, const void *p, size_t n, int how), (f, p, n, how), p, n)
DOOR(size_t, fwrite, (const void *p, size_t size, size_t n, FILE *f), (p, size, n, f), p, size * n)
DOOR(ssize_t, read, (int f, void *p, size_t n), (f, p, n), p, n)
DOOR(ssize_t, pread, (int f, void *p, size_t n, off_t at), (f, p, n, at), p, n)
DOOR(ssize_t, pread64, (int f, void *p, size_t n, off_t at), (f, p, n, at), p, n)
DOOR(ssize_t, recv, (int f, void *p, size_t n, int how), (f, p, n, how), p, n)
DOOR(size_t, fread, (void *p, size_t size, size_t n, FILE *f), (p, size, n, f), p, size * n)

DOOR(ssize_t, sendto, (int f, const void *p, size_t n, int how, const struct sockaddr *to, socklen_t length),
     (f, p, n, how, to, length), p, n)
DOOR(ssize_t, recvfrom, (int f, void *p, size_t n, int how, struct sockaddr *from, socklen_t *length),
     (f, p, n, how, from, length), p, n)

static void make_parts(const struct iovec *parts, size_t n) {
    for (size_t i = 0; i < n; i++)
        phantom_make_now(parts[i].iov_base, parts[i].iov_len);
}

#define DOOR_OF_PARTS(NAME, PARAMETERS, ARGUMENTS, PARTS, COUNT)   \
    PHANTOM_API ssize_t NAME PARAMETERS {                          \
        static ssize_t(*real) PARAMETERS;                          \
        if (!real)                                                 \
            real = (ssize_t(*) PARAMETERS)dlsym(RTLD_NEXT, #NAME); \
        if ((COUNT) > 0)                                           \
            make_parts(PARTS, (size_t)(COUNT));                    \
        return real ARGUMENTS;                                     \
    }

#define AT (int f, const struct iovec *parts, int n, off_t at), (f, parts, n, at), parts, n
#define AT_HOW (int f, const struct iovec *parts, int n, off_t at, int how), (f, parts, n, at, how), parts, n
#define DOOR_OF(...) DOOR_OF_PARTS(__VA_ARGS__)

DOOR_OF_PARTS(writev, (int f, const struct iovec *parts, int n), (f, parts, n), parts, n)
DOOR_OF_PARTS(readv, (int f, const struct iovec *parts, int n), (f, parts, n), parts, n)
DOOR_OF(pwritev, AT)
DOOR_OF(pwritev64, AT)
DOOR_OF(preadv, AT)
DOOR_OF(preadv64, AT)
DOOR_OF(pwritev2, AT_HOW)
DOOR_OF(pwritev64v2, AT_HOW)
DOOR_OF(preadv2, AT_HOW)
DOOR_OF(preadv64v2, AT_HOW)
DOOR_OF_PARTS(sendmsg, (int f, const struct msghdr *m, int how), (f, m, how), m->msg_iov, m->msg_iovlen)
DOOR_OF_PARTS(recvmsg, (int f, struct msghdr *m, int how), (f, m, how), m->msg_iov, m->msg_iovlen)
