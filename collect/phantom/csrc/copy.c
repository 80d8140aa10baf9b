/* Copies and fills. This library really does a small copy, since scripts read small values back, and a small copy
 * touches few pages. It omits a large copy to the device. A host that reads a large range from the device gets zeros
 * unless the values are known, never what an earlier tensor left in the memory: a stale value once made nonzero()
 * request 123,456,789 rows. */
#include "phantom.h"

#include <string.h>

#define __CUDA_INTERNAL_SKIP_CPP_HEADERS__
#include <driver_types.h>

static __thread int64_t answer = -1;
static int64_t reads;
static int strict;                 /* if set, only announced reads return what is in memory */
static __thread int announced, announced_known;

void phantom_strict_reads(void) { __atomic_store_n(&strict, 1, __ATOMIC_RELAXED); }

void phantom_announce_reads(int more) { announced += more; }

void phantom_announce_known(int more) {
    announced += more;
    announced_known += more;
}

void phantom_answer(int64_t value) { answer = value; }

int64_t phantom_reads(void) { return __atomic_load_n(&reads, __ATOMIC_RELAXED); }

static bool answered(void *to, size_t bytes) {
    if (answer < 0 || bytes > sizeof answer)
        return false;
    int64_t value = bytes == 1 ? answer != 0 : answer;
    memcpy(to, &value, bytes);
    return true;
}

/* Zeroes the target of an omitted copy, so that later small reads do not find the values of an earlier tensor. */
static void forget(void *to, size_t bytes) {
    char *first = (char *)(((uintptr_t)to + 4095) & ~(uintptr_t)4095),
         *end = (char *)(((uintptr_t)to + bytes) & ~(uintptr_t)4095);
    if (first >= end) {
        memset(to, 0, bytes);
        return;
    }
    memset(to, 0, (size_t)(first - (char *)to));
    memset(end, 0, (size_t)((char *)to + bytes - end));
    phantom_drop_pages(first, (uint64_t)(end - first));
}

void phantom_copy(void *to, const void *from, size_t bytes) {
    bool from_device = phantom_device_of(from) >= 0, to_device = phantom_device_of(to) >= 0;
    if (!bytes || to == from)
        return;
    if (from_device && !to_device) {
        if (answered(to, bytes))
            return;
        __atomic_add_fetch(&reads, 1, __ATOMIC_RELAXED);
        if (__atomic_load_n(&strict, __ATOMIC_RELAXED) && !announced) {
            phantom_note("a kernel read from the device a value that no kernel had computed, such as the size of its "
                         "output: it got zeros");
            memset(to, 0, bytes);
            return;
        }
        if (announced_known) {
            memmove(to, from, bytes);
            return;
        }
        if (bytes > phantom_copy_limit()) {
            phantom_note("a read of more than the copy limit from the device gave zeros: what the script saves or "
                         "sends of it has no values");
            memset(to, 0, bytes);
            return;
        }
    }
    if (bytes <= phantom_copy_limit() || (!from_device && !to_device)) {
        memmove(to, from, bytes);
        return;
    }
    forget(to, bytes);
}

PHANTOM_API cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream) {
    PHANTOM_USES_CUDA;
    (void)kind;
    phantom_works(stream);
    phantom_copy(to, from, bytes);
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, int kind) {
    return cudaMemcpyAsync(to, from, bytes, kind, NULL);
}

PHANTOM_API cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                            void *stream) {
    (void)to_device, (void)from_device;
    return cudaMemcpyAsync(to, from, bytes, 0, stream);
}

PHANTOM_API cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                          size_t rows, int kind, void *stream) {
    PHANTOM_USES_CUDA;
    (void)kind;
    phantom_works(stream);
    if (width && rows > phantom_copy_limit() / width && phantom_device_of(to) >= 0)
        return cudaSuccess;
    for (size_t row = 0; row < rows; row++)
        phantom_copy((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width);
    return cudaSuccess;
}

/* Copies to symbols do nothing, since the phantom GPU keeps no contents for symbols: see cudaGetSymbolAddress. */
PHANTOM_API cudaError_t cudaMemcpyToSymbol(void) {
    PHANTOM_USES_CUDA;
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, void *stream) {
    PHANTOM_USES_CUDA;
    phantom_works(stream);
    if (bytes <= phantom_copy_limit() || phantom_device_of(to) < 0)
        memset(to, value, bytes);
    else
        forget(to, bytes);
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaMemset(void *to, int value, size_t bytes) {
    return cudaMemsetAsync(to, value, bytes, NULL);
}
