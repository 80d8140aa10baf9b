/* Devices and contexts of the driver interface. */
#include "driver.h"

#include <stdio.h>
#include <string.h>

extern int cudaDeviceGetAttribute(int *value, int attribute, int device) __attribute__((weak));
extern int cudaDriverGetVersion(int *version) __attribute__((weak));
extern int cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) __attribute__((weak));

PHANTOM_API int cuInit(unsigned flags) {
    USES_CUDA;
    (void)flags;
    return device_count() ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

PHANTOM_API int cuDriverGetVersion(int *version) {
    return cudaDriverGetVersion ? cudaDriverGetVersion(version) : CUDA_ERROR_NO_DEVICE;
}

PHANTOM_API int cuDeviceGetCount(int *count) {
    USES_CUDA;
    *count = device_count();
    return CUDA_SUCCESS;
}

static int check(int device) {
    if (!device_count())
        return CUDA_ERROR_NO_DEVICE;
    return device < 0 || device >= device_count() ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

PHANTOM_API int cuDeviceGet(int *device, int ordinal) {
    USES_CUDA;
    *device = ordinal;
    return check(ordinal);
}

PHANTOM_API int cuDeviceGetName(char *name, int size, int device) {
    USES_CUDA;
    int status = check(device);
    if (!status)
        snprintf(name, (size_t)size, "%s", phantom_profile()->name);
    return status;
}

PHANTOM_API int cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
    USES_CUDA;
    int status = check(device);
    if (!status)
        phantom_device_uuid(phantom_physical_device(device), uuid);
    return status;
}

PHANTOM_API int cuDeviceGetUuid(unsigned char *uuid, int device) { return cuDeviceGetUuid_v2(uuid, device); }

PHANTOM_API int cuDeviceGetAttribute(int *value, int attribute, int device) {
    return cudaDeviceGetAttribute ? cudaDeviceGetAttribute(value, attribute, device) : CUDA_ERROR_NO_DEVICE;
}

PHANTOM_API int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes) {
    return cudaMemGetInfo ? cudaMemGetInfo(free_bytes, total_bytes) : CUDA_ERROR_NO_DEVICE;
}

PHANTOM_API int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    size_t unused;
    int status = check(device);
    return status ? status : cuMemGetInfo_v2(&unused, bytes);
}

/* ---- contexts: one for each device, identified by its handle; making it current makes the device current */

#define FIRST_CONTEXT 0x1000

static void *context_of(int device) { return (void *)(uintptr_t)(FIRST_CONTEXT + 16 * device); }

PHANTOM_API int cuCtxGetCurrent(void **context) {
    USES_CUDA;
    *context = device_count() ? context_of(phantom_current_device()) : NULL;
    return CUDA_SUCCESS;
}

PHANTOM_API int cuCtxSetCurrent(void *context) {
    USES_CUDA;
    if (!context)
        return CUDA_SUCCESS;
    return phantom_set_current_device ? phantom_set_current_device((int)((uintptr_t)context - FIRST_CONTEXT) / 16)
                                      : CUDA_ERROR_NO_DEVICE;
}

PHANTOM_API int cuCtxGetDevice(int *device) {
    USES_CUDA;
    if (!device_count())
        return CUDA_ERROR_NO_DEVICE;
    *device = phantom_current_device();
    return CUDA_SUCCESS;
}

#define STACK 64
static __thread int stack[STACK], depth;

PHANTOM_API int cuCtxPushCurrent_v2(void *context) {
    USES_CUDA;
    if (!device_count() || depth == STACK)
        return CUDA_ERROR_INVALID_VALUE;
    stack[depth++] = phantom_current_device();
    return cuCtxSetCurrent(context);
}

PHANTOM_API int cuCtxPopCurrent_v2(void **context) {
    USES_CUDA;
    if (!depth)
        return CUDA_ERROR_INVALID_VALUE;
    if (context)
        cuCtxGetCurrent(context);
    return phantom_set_current_device(stack[--depth]);
}

/* Functions without a version in their name are the oldest. cuDNN looks them up, and uses no contexts if one is
 * missing. */
PHANTOM_API int cuCtxPushCurrent(void *context) { return cuCtxPushCurrent_v2(context); }

PHANTOM_API int cuCtxPopCurrent(void **context) { return cuCtxPopCurrent_v2(context); }

PHANTOM_API int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    USES_CUDA;
    *flags = 0;
    *active = 1;
    return check(device);
}

PHANTOM_API int cuDevicePrimaryCtxRetain(void **context, int device) {
    USES_CUDA;
    *context = context_of(device);
    return check(device);
}

PHANTOM_API int cuStreamGetCtx(void *stream, void **context) {
    (void)stream;
    return cuCtxGetCurrent(context);
}

PHANTOM_API int cuStreamIsCapturing(void *stream, int *status) {
    USES_CUDA;
    *status = phantom_is_capturing ? phantom_is_capturing(stream) : 0;
    return CUDA_SUCCESS;
}

PHANTOM_API int cuGetErrorString(int error, const char **text) {
    *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory"
            : error                           ? "not answered by the phantom GPU"
                                              : "no error";
    return CUDA_SUCCESS;
}

PHANTOM_API int cuGetErrorName(int error, const char **name) {
    *name = error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
            : error                           ? "CUDA_ERROR_UNKNOWN"
                                              : "CUDA_SUCCESS";
    return CUDA_SUCCESS;
}
