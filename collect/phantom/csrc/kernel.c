/* Kernels are registered and launched, and do nothing. */
#include "phantom.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
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

/* The name of each kernel, by the stub that launches it. Names are read only until the driver has taken memory for all
 * uses (ALL_USES). */
static struct named {
    const void *stub;
    const char *name;
} *names;
static size_t name_count, name_room;
static pthread_mutex_t naming = PTHREAD_MUTEX_INITIALIZER;

PHANTOM_API void __cudaRegisterFunction(void **handle, const void *stub, void *function, const char *name) {
    (void)handle, (void)function;
    pthread_mutex_lock(&naming);
    if (name_count == name_room) {
        size_t room = name_room ? 2 * name_room : 1 << 16;
        struct named *grown = realloc(names, room * sizeof *grown);
        if (grown) {
            names = grown;
            name_room = room;
        }
    }
    if (name_count < name_room)
        names[name_count++] = (struct named){stub, name};
    pthread_mutex_unlock(&naming);
}

static const char *name_of(const void *stub) {
    const char *found = "";
    pthread_mutex_lock(&naming);
    for (size_t i = name_count; i-- && !*found;)
        if (names[i].stub == stub)
            found = names[i].name;
    pthread_mutex_unlock(&naming);
    return found;
}

PHANTOM_API void __cudaRegisterVar(void) {}

PHANTOM_API char __cudaInitModule(void **handle) {
    (void)handle;
    return 1;
}

/* At a device's first kernel the driver takes memory for code (corrections/driver_code.c). The rest depends on the
 * kernel. Some 40 short programs were tried on an H200 (torch 2.11). Kernels for random numbers, softmax and sorting
 * never freed local memory, and all others did. Kernels that reduce or gather took more for code. Kernels of cuDNN and
 * cuBLAS do none of this, and are not launched here. */
static struct {
    int used; /* one bit for each phantom_use that has occurred */
} devices[PHANTOM_MAX_DEVICES];
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
enum { ALL_USES = 1 << PHANTOM_FIRST_KERNEL | 1 << PHANTOM_LOCAL_MEMORY_FREED | 1 << PHANTOM_MORE_CODE };

static bool is_any(const char *name, const char *const *parts) {
    for (; *parts; parts++)
        if (strstr(name, *parts))
            return true;
    return false;
}

static bool uses_known(int device) { return __atomic_load_n(&devices[device].used, __ATOMIC_RELAXED) == ALL_USES; }

static void use(int device, enum phantom_use use) {
    if (devices[device].used & 1 << use)
        return;
    phantom_arena_used(device, use);
    __atomic_store_n(&devices[device].used, devices[device].used | 1 << use, __ATOMIC_RELAXED);
}

void phantom_launched(const void *kernel) {
    static const char *const keeping[] = {"distribution", "oftmax", "oftMax", "Sort", "sort", NULL};
    static const char *const coding[] = {"reduce", "Reduce", "gather", "Gather", "index", "Index", NULL};
    int device = phantom_current_device();
    if (uses_known(device))
        return;
    const char *name = name_of(kernel);
    pthread_mutex_lock(&loading);
    use(device, PHANTOM_FIRST_KERNEL);
    if (!is_any(name, keeping))
        use(device, PHANTOM_LOCAL_MEMORY_FREED);
    if (is_any(name, coding))
        use(device, PHANTOM_MORE_CODE);
    pthread_mutex_unlock(&loading);
}

/* torch.cuda._sleep's kernel takes the time that its argument says, in cycles of the device's clock. It is recognised
 * by its caller: the code of at::cuda::sleep, which is less than 512 bytes long. */
static bool from_sleep(const void *caller) {
    static const char *start;
    static int looked;
    if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
        void *torch = dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_NOLOAD);
        start = torch ? dlsym(torch, "_ZN2at4cuda5sleepEl") : NULL;
        __atomic_store_n(&looked, torch != NULL, __ATOMIC_RELEASE);
    }
    return start && (const char *)caller > start && (const char *)caller < start + 512;
}

/* The configuration of a launch, which the kernel's stub fetches by __cudaPopCallConfiguration. */
static __thread struct {
    dim3 blocks, threads;
    size_t shared;
    void *stream;
    bool sleeps;
} pushed;

static cudaError_t launched_with(const void *kernel, const void *caller, void **arguments, const void *stream) {
    PHANTOM_USES_CUDA;
    phantom_launched(kernel);
    phantom_works(stream);
    if (pushed.sleeps) {
        pushed.sleeps = false;
        double cycles = (double)*(int64_t *)arguments[0], khz = (double)phantom_profile()->core_clock_khz;
        if (cycles > 0 && khz > 0)
            phantom_sleeps(stream, (uint64_t)(cycles / khz * 1e6));
    } else if (phantom_launched_from(caller)) {
        phantom_launched_with(arguments, NULL);
    }
    return cudaSuccess;
}

/* Code that nvcc generates for f<<<...>>>() calls the kernel's stub only if this function returns 0. The stub then
 * passes the kernel's arguments to __cudaLaunchKernel. */
PHANTOM_API unsigned __cudaPushCallConfiguration(dim3 blocks, dim3 threads, size_t shared, void *stream) {
    const void *caller = __builtin_return_address(0);
    pushed.sleeps = from_sleep(caller);
    if (pushed.sleeps || phantom_launched_from(caller) || !uses_known(phantom_current_device())) {
        pushed.blocks = blocks, pushed.threads = threads, pushed.shared = shared, pushed.stream = stream;
        return 0;
    }
    phantom_works(stream);
    return 1;
}

PHANTOM_API cudaError_t __cudaPopCallConfiguration(dim3 *blocks, dim3 *threads, size_t *shared, void **stream) {
    *blocks = pushed.blocks, *threads = pushed.threads, *shared = pushed.shared, *stream = pushed.stream;
    return cudaSuccess;
}

PHANTOM_API cudaError_t __cudaLaunchKernel(const void *kernel, dim3 blocks, dim3 threads, void **arguments,
                                           size_t shared, void *stream) {
    (void)blocks, (void)threads, (void)shared;
    return launched_with(kernel, __builtin_return_address(0), arguments, stream);
}

PHANTOM_API cudaError_t cudaLaunchKernel(const void *kernel, dim3 blocks, dim3 threads, void **arguments, size_t shared,
                                         void *stream) {
    (void)blocks, (void)threads, (void)shared;
    return launched_with(kernel, __builtin_return_address(0), arguments, stream);
}

PHANTOM_API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *configuration, const void *kernel,
                                            void **arguments) {
    return launched_with(kernel, __builtin_return_address(0), arguments, configuration ? configuration->stream : NULL);
}

PHANTOM_API cudaError_t cudaLaunchCooperativeKernel(const void *kernel, dim3 blocks, dim3 threads, void **arguments,
                                                    size_t shared, void *stream) {
    (void)blocks, (void)threads, (void)shared;
    return launched_with(kernel, __builtin_return_address(0), arguments, stream);
}

PHANTOM_API cudaError_t __cudaGetKernel(void **kernel, const void *function) {
    *kernel = (void *)function;
    return cudaSuccess;
}

/* Registers per thread differ from kernel to kernel and are unknown without its code. 32 limits no launch. The
 * sizes that torch and CUB derive from these attributes depend on the threads only. */
PHANTOM_API cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function) {
    PHANTOM_USES_CUDA;
    (void)function;
    const struct phantom_profile *profile = phantom_profile();
    memset(attributes, 0, sizeof *attributes);
    attributes->maxThreadsPerBlock = (int)profile->max_threads_per_block;
    attributes->numRegs = 32;
    attributes->ptxVersion = (int)profile->kernel_ptx_version;
    attributes->binaryVersion = (int)profile->kernel_binary_version;
    attributes->maxDynamicSharedSizeBytes = (int)profile->shared_memory_per_block_optin_bytes;
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaFuncSetAttribute(void) {
    PHANTOM_USES_CUDA;
    return cudaSuccess;
}

/* The blocks that fit on a multiprocessor by threads, blocks and shared memory, as NVIDIA's occupancy calculator counts
 * them. Registers are left out. */
PHANTOM_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function,
                                                                               int threads, size_t shared,
                                                                               unsigned flags) {
    PHANTOM_USES_CUDA;
    (void)function, (void)flags;
    const struct phantom_profile *profile = phantom_profile();
    int64_t most = profile->max_threads_per_multiprocessor / (threads > 0 ? threads : 1);
    if (most > profile->max_blocks_per_multiprocessor)
        most = profile->max_blocks_per_multiprocessor;
    if (shared) {
        int64_t by_shared = profile->shared_memory_per_multiprocessor_bytes /
                            ((int64_t)shared + profile->reserved_shared_memory_per_block_bytes);
        if (by_shared < most)
            most = by_shared;
    }
    *blocks = most < 1 ? 1 : (int)most;
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int threads,
                                                                      size_t shared) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared, 0);
}

PHANTOM_API cudaError_t cudaProfilerStart(void) { return cudaSuccess; }

PHANTOM_API cudaError_t cudaProfilerStop(void) { return cudaSuccess; }
