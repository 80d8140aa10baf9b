/* Kernels launched through the driver: by Triton, NVRTC and Python packages. They do nothing. */
#include "driver.h"

/* The first members of CUlaunchConfig. */
struct configuration {
    unsigned blocks[3], threads[3], shared;
    void *stream;
};

/* All kernels of the driver interface share one handle (module.c), so phantom_launched cannot tell them apart. */
static int launched(const void *function, const void *caller, const void *stream, void **arguments, void **packed) {
    if (!phantom_launched_from)
        return CUDA_ERROR_NO_DEVICE;
    USES_CUDA;
    phantom_launched(function);
    phantom_works(stream);
    if (phantom_launched_from(caller))
        phantom_launched_with(arguments, packed);
    return CUDA_SUCCESS;
}

PHANTOM_API int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads_x,
                               unsigned threads_y, unsigned threads_z, unsigned shared, void *stream, void **arguments,
                               void **packed) {
    (void)x, (void)y, (void)z, (void)threads_x, (void)threads_y, (void)threads_z, (void)shared;
    return launched(function, __builtin_return_address(0), stream, arguments, packed);
}

PHANTOM_API int cuLaunchCooperativeKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads_x,
                                          unsigned threads_y, unsigned threads_z, unsigned shared, void *stream,
                                          void **arguments) {
    (void)x, (void)y, (void)z, (void)threads_x, (void)threads_y, (void)threads_z, (void)shared;
    return launched(function, __builtin_return_address(0), stream, arguments, NULL);
}

PHANTOM_API int cuLaunchKernelEx(const void *configuration, void *function, void **arguments, void **packed) {
    const struct configuration *given = configuration;
    return launched(function, __builtin_return_address(0), given ? given->stream : NULL, arguments, packed);
}
