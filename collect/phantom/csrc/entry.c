/* Answers when a program asks the runtime for a driver function: with the function of the stub libcuda.so.1, which
 * siblings.c has opened. */
#include "phantom.h"

#include <dlfcn.h>

#define __CUDA_INTERNAL_SKIP_CPP_HEADERS__
#include <driver_types.h>

PHANTOM_API cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **found, unsigned version,
                                                         unsigned long long flags, int *status) {
    (void)version, (void)flags;
    static void *(*entry)(const char *);
    if (!entry) {
        void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        entry = driver ? (void *(*)(const char *))dlsym(driver, "phantom_driver_entry") : NULL;
        if (!entry)
            return cudaErrorInvalidValue;
    }
    *found = entry(name);
    if (status)
        *status = cudaDriverEntryPointSuccess;
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaGetDriverEntryPoint(const char *name, void **found, unsigned long long flags, int *status) {
    return cudaGetDriverEntryPointByVersion(name, found, 0, flags, status);
}
