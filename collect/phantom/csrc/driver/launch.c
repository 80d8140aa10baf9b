/* Kernels launched through the driver: those of Triton, of NVRTC and of Python packages. They do nothing. */
#include "driver.h"

static int launched(const void *caller, void **arguments, void **packed) {
    if (!phantom_launched_from)
        return CUDA_ERROR_NO_DEVICE;
    USES_CUDA;
    if (phantom_launched_from(caller))
        phantom_launched_with(arguments, packed);
    return CUDA_SUCCESS;
}

PHANTOM_API int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads_x, unsigned threads_y, unsigned threads_z,
                               unsigned shared, void *stream, void **arguments, void **packed) {
    (void)function, (void)x, (void)y, (void)z, (void)threads_x, (void)threads_y, (void)threads_z, (void)shared, (void)stream;
    return launched(__builtin_return_address(0), arguments, packed);
}

PHANTOM_API int cuLaunchCooperativeKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads_x, unsigned threads_y,
                                          unsigned threads_z, unsigned shared, void *stream, void **arguments) {
    (void)function, (void)x, (void)y, (void)z, (void)threads_x, (void)threads_y, (void)threads_z, (void)shared, (void)stream;
    return launched(__builtin_return_address(0), arguments, NULL);
}

PHANTOM_API int cuLaunchKernelEx(const void *configuration, void *function, void **arguments, void **packed) {
    (void)configuration, (void)function;
    return launched(__builtin_return_address(0), arguments, packed);
}
