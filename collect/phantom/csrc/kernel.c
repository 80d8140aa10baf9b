/* Kernels are registered and launched, and do nothing. */
#include "phantom.h"

#include <string.h>

#define __CUDA_INTERNAL_SKIP_CPP_HEADERS__
#include <driver_types.h>

PHANTOM_API void **__cudaRegisterFatBinary(void *binary) {
    static void *handle[4];
    (void)binary;
    return handle;
}

PHANTOM_API void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }

PHANTOM_API void __cudaUnregisterFatBinary(void **handle) { (void)handle; }

PHANTOM_API void __cudaRegisterFunction(void) {}

PHANTOM_API void __cudaRegisterVar(void) {}

PHANTOM_API char __cudaInitModule(void **handle) {
    (void)handle;
    return 1;
}

/* What nvcc makes of f<<<...>>>() calls the kernel's stub only if this returns 0. */
PHANTOM_API unsigned __cudaPushCallConfiguration(void) { return 1; }

PHANTOM_API cudaError_t __cudaPopCallConfiguration(void) { return cudaSuccess; }

PHANTOM_API cudaError_t __cudaLaunchKernel(void) { return cudaSuccess; }

PHANTOM_API cudaError_t cudaLaunchKernel(void) { return cudaSuccess; }

PHANTOM_API cudaError_t cudaLaunchKernelExC(void) { return cudaSuccess; }

PHANTOM_API cudaError_t cudaLaunchCooperativeKernel(void) { return cudaSuccess; }

PHANTOM_API cudaError_t __cudaGetKernel(void **kernel, const void *function) {
    *kernel = (void *)function;
    return cudaSuccess;
}

/* Registers per thread differ from kernel to kernel and are not known without looking into it; 32 limits no launch, and
 * the sizes that torch and CUB derive from these attributes depend on the threads only. */
PHANTOM_API cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function) {
    (void)function;
    const struct phantom_profile *profile = phantom_profile();
    memset(attributes, 0, sizeof *attributes);
    attributes->maxThreadsPerBlock = (int)profile->max_threads_per_block;
    attributes->numRegs = 32;
    attributes->ptxVersion = attributes->binaryVersion = (int)(10 * profile->compute_major + profile->compute_minor);
    attributes->maxDynamicSharedSizeBytes = (int)profile->shared_memory_per_block_optin_bytes;
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaFuncSetAttribute(void) { return cudaSuccess; }

/* Limited by threads, blocks and shared memory, as the occupancy calculator does it without registers. */
PHANTOM_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int threads, size_t shared,
                                                                               unsigned flags) {
    (void)function, (void)flags;
    const struct phantom_profile *profile = phantom_profile();
    int64_t most = profile->max_threads_per_multiprocessor / (threads > 0 ? threads : 1);
    if (most > profile->max_blocks_per_multiprocessor)
        most = profile->max_blocks_per_multiprocessor;
    if (shared) {
        int64_t by_shared = profile->shared_memory_per_multiprocessor_bytes / ((int64_t)shared + profile->reserved_shared_memory_per_block_bytes);
        if (by_shared < most)
            most = by_shared;
    }
    *blocks = most < 1 ? 1 : (int)most;
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int threads, size_t shared) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared, 0);
}

PHANTOM_API cudaError_t cudaProfilerStart(void) { return cudaSuccess; }

PHANTOM_API cudaError_t cudaProfilerStop(void) { return cudaSuccess; }
