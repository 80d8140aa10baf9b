/* What the driver takes of a device's addresses for code, as recordings of an H200 show it: for the first kernel, for
 * the first that reduces or gathers, and for cuBLAS, as its first handle is made. Some later kernels take 2, 8 or 10
 * MiB. Launches do not show which kernels do, so no rule covers them. */
#include "../arena.h"
#include "rules.h"

static int64_t take(const struct phantom_question *question, enum phantom_use use, uint64_t bytes) {
    if (question->use != use)
        return PHANTOM_UNKNOWN;
    phantom_blocks_take(question->arena, bytes);
    return (int64_t)bytes;
}

int64_t phantom_first_kernel(const struct phantom_question *question) {
    return take(question, PHANTOM_FIRST_KERNEL, 2 * MIB);
}

int64_t phantom_more_code(const struct phantom_question *question) {
    return take(question, PHANTOM_MORE_CODE, 10 * MIB);
}

int64_t phantom_cublas_handle(const struct phantom_question *question) {
    return take(question, PHANTOM_CUBLAS_HANDLE, 64 * MIB);
}
