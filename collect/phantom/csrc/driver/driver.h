/* Declarations for the sources of the stub libcuda.so.1. Its references to functions of libphantom.so are weak: a
 * process that lost LD_PRELOAD but found this library gets a driver without a device. */
#ifndef PHANTOM_DRIVER_H
#define PHANTOM_DRIVER_H

#include "../phantom.h"

#pragma weak phantom_profile
#pragma weak phantom_device_count
#pragma weak phantom_lost
#pragma weak phantom_physical_device
#pragma weak phantom_physical_device_count
#pragma weak phantom_device_uuid
#pragma weak phantom_current_device
#pragma weak phantom_set_current_device
#pragma weak phantom_device_of
#pragma weak phantom_is_capturing
#pragma weak phantom_ignore
#pragma weak phantom_refuse
#pragma weak phantom_launched_from
#pragma weak phantom_launched_with
#pragma weak phantom_works
#pragma weak phantom_launched
#pragma weak phantom_virtual_reserve
#pragma weak phantom_virtual_free
#pragma weak phantom_physical_create
#pragma weak phantom_physical_release
#pragma weak phantom_virtual_map
#pragma weak phantom_virtual_unmap
#pragma weak phantom_address_range

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_SUPPORTED = 801,
};

static inline int device_count(void) { return phantom_device_count ? phantom_device_count() : 0; }

#define USES_CUDA                               \
    do {                                        \
        if (phantom_lost && phantom_lost())     \
            return CUDA_ERROR_NOT_INITIALIZED;  \
    } while (0)

#endif
