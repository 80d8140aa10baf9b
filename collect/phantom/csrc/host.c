/* Page-locked host memory is ordinary memory here. Its addresses are remembered, since torch asks which pointers are
 * pinned. */
#include "phantom.h"

#include <pthread.h>
#include <stdlib.h>

#define __CUDA_INTERNAL_SKIP_CPP_HEADERS__
#include <driver_types.h>

struct pinned {
    struct pinned *next;
    const char *from;
    size_t bytes;
    bool registered;
};

static struct pinned *all;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static cudaError_t pin(void *address, size_t bytes, bool registered) {
    struct pinned *p = malloc(sizeof *p);
    if (!p)
        return cudaErrorMemoryAllocation;
    p->from = address;
    p->bytes = bytes ? bytes : 1;
    p->registered = registered;
    pthread_rwlock_wrlock(&lock);
    p->next = all;
    all = p;
    pthread_rwlock_unlock(&lock);
    return cudaSuccess;
}

static bool unpin(const void *address, bool registered) {
    struct pinned *found = NULL;
    pthread_rwlock_wrlock(&lock);
    for (struct pinned **p = &all; *p; p = &(*p)->next) {
        if ((*p)->from == address && (*p)->registered == registered) {
            found = *p;
            *p = found->next;
            break;
        }
    }
    pthread_rwlock_unlock(&lock);
    free(found);
    return found != NULL;
}

bool phantom_is_pinned(const void *address) {
    bool is = false;
    pthread_rwlock_rdlock(&lock);
    for (struct pinned *p = all; p && !is; p = p->next)
        is = (const char *)address >= p->from && (const char *)address < p->from + p->bytes;
    pthread_rwlock_unlock(&lock);
    return is;
}

PHANTOM_API cudaError_t cudaHostAlloc(void **address, size_t bytes, unsigned flags) {
    PHANTOM_USES_CUDA;
    (void)flags;
    if (posix_memalign(address, 4096, bytes ? bytes : 1)) {
        *address = NULL;
        return cudaErrorMemoryAllocation;
    }
    cudaError_t status = pin(*address, bytes, false);
    if (status)
        free(*address);
    return status;
}

PHANTOM_API cudaError_t cudaMallocHost(void **address, size_t bytes) { return cudaHostAlloc(address, bytes, 0); }

PHANTOM_API cudaError_t cudaFreeHost(void *address) {
    PHANTOM_USES_CUDA;
    if (!address)
        return cudaSuccess;
    if (!unpin(address, false))
        return cudaErrorInvalidValue;
    free(address);
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaHostRegister(void *address, size_t bytes, unsigned flags) {
    PHANTOM_USES_CUDA;
    (void)flags;
    return pin(address, bytes, true);
}

PHANTOM_API cudaError_t cudaHostUnregister(void *address) {
    PHANTOM_USES_CUDA;
    return unpin(address, true) ? cudaSuccess : cudaErrorHostMemoryNotRegistered;
}
