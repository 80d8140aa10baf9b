/* Modules, kernels and launches of the driver interface: what NVRTC's users in torch and Triton's launcher need. */
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* The addresses of these variables serve as distinct handles, which are not NULL. The variables hold nothing. */
static char module, library, function, kernel, link_state;

PHANTOM_API int cuModuleLoad(void **made, const char *path) {
    (void)path;
    *made = &module;
    return CUDA_SUCCESS;
}

PHANTOM_API int cuModuleLoadData(void **made, const void *image) {
    (void)image;
    *made = &module;
    return CUDA_SUCCESS;
}

PHANTOM_API int cuModuleLoadDataEx(void **made, const void *image) { return cuModuleLoadData(made, image); }

PHANTOM_API int cuModuleGetFunction(void **made, void *in, const char *name) {
    (void)in, (void)name;
    *made = &function;
    return CUDA_SUCCESS;
}

PHANTOM_API int cuModuleGetGlobal_v2(void) { return CUDA_ERROR_NOT_FOUND; }

PHANTOM_API int cuLibraryLoadData(void **made) {
    *made = &library;
    return CUDA_SUCCESS;
}

PHANTOM_API int cuLibraryLoadFromFile(void **made) { return cuLibraryLoadData(made); }

PHANTOM_API int cuLibraryGetKernel(void **made) {
    *made = &kernel;
    return CUDA_SUCCESS;
}

PHANTOM_API int cuLibraryGetModule(void **made) {
    *made = &module;
    return CUDA_SUCCESS;
}

PHANTOM_API int cuLibraryGetGlobal(void) { return CUDA_ERROR_NOT_FOUND; }

PHANTOM_API int cuKernelGetFunction(void **made) {
    *made = &function;
    return CUDA_SUCCESS;
}

/* CUfunction_attribute: 0 threads a block, 4 registers a thread */
static int attribute_of(int attribute) {
    if (attribute == 0)
        return phantom_profile ? (int)phantom_profile()->max_threads_per_block : 0;
    return attribute == 4 ? 32 : 0;
}

PHANTOM_API int cuFuncGetAttribute(int *value, int attribute) {
    *value = attribute_of(attribute);
    return CUDA_SUCCESS;
}

PHANTOM_API int cuKernelGetAttribute(int *value, int attribute) { return cuFuncGetAttribute(value, attribute); }

PHANTOM_API int cuLinkCreate_v2(unsigned count, void *options, void *values, void **state) {
    (void)count, (void)options, (void)values;
    *state = &link_state;
    return CUDA_SUCCESS;
}

PHANTOM_API int cuLinkCreate(unsigned count, void *options, void *values, void **state) {
    return cuLinkCreate_v2(count, options, values, state);
}

PHANTOM_API int cuLinkComplete(void *state, void **binary, size_t *bytes) {
    (void)state;
    *binary = &link_state;
    *bytes = 0;
    return CUDA_SUCCESS;
}

/* Reports two blocks for any kernel, as Triton's usual kernels reach: which registers and shared memory a kernel needs
 * is unknown. The number affects launch sizes, which allocate nothing. */
PHANTOM_API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks) {
    *blocks = 2;
    return CUDA_SUCCESS;
}

PHANTOM_API int cuOccupancyMaxActiveClusters(int *clusters) {
    *clusters = 1;
    return CUDA_SUCCESS;
}

PHANTOM_API int cuOccupancyMaxPotentialClusterSize(int *size) {
    *size = 8;
    return CUDA_SUCCESS;
}

PHANTOM_API int cuGetExportTable(const void **table, const void *id) {
    (void)table, (void)id;
    return CUDA_ERROR_NOT_FOUND;
}

/* ---- entry points by name, which come without the suffix of their version */

static int unnamed(void) { return CUDA_SUCCESS; }

static void *entry(const char *name) {
    static void *self;
    if (!self) {
        Dl_info info;
        if (dladdr((void *)entry, &info))
            self = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
        if (!self)
            return NULL;
    }
    char versioned[256];
    static const char *const suffixes[] = {"_v3", "_v2", ""};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        snprintf(versioned, sizeof versioned, "%s%s", name, suffixes[i]);
        void *found = dlsym(self, versioned);
        if (found)
            return found;
    }
    return NULL;
}

/* Returns the function with this name, or a function that does nothing for an unknown name: at their start the runtimes
 * inside NVIDIA's libraries look up hundreds of functions and give up if one is missing, but call only a few. */
PHANTOM_API void *phantom_driver_entry(const char *name) {
    void *found = entry(name);
    if (found)
        return found;
    if (phantom_ignore)
        phantom_ignore(name, 0);
    return (void *)unnamed;
}

PHANTOM_API int cuGetProcAddress_v2(const char *name, void **found, int version, unsigned long long flags,
                                    int *status) {
    (void)version, (void)flags;
    *found = phantom_driver_entry(name);
    if (status)
        *status = 0;
    return CUDA_SUCCESS;
}

PHANTOM_API int cuGetProcAddress(const char *name, void **found, int version, unsigned long long flags) {
    return cuGetProcAddress_v2(name, found, version, flags, NULL);
}
