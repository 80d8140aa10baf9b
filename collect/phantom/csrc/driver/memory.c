/* Memory of the driver interface: plain allocations, and virtual memory management for expandable segments. */
#include "driver.h"

extern int cudaMalloc(void **address, size_t bytes) __attribute__((weak));
extern int cudaFree(void *address) __attribute__((weak));
extern int cudaMemcpy(void *to, const void *from, size_t bytes, int kind) __attribute__((weak));
extern int cudaHostAlloc(void **address, size_t bytes, unsigned flags) __attribute__((weak));
extern int cudaFreeHost(void *address) __attribute__((weak));

/* CUmemAllocationProp up to its location's id: type, requested handle types, location type, location id. */
struct allocation_property {
    int type, handle_types, location_type, location_id;
};

PHANTOM_API int cuMemAlloc_v2(void **address, size_t bytes) {
    return cudaMalloc ? cudaMalloc(address, bytes) : CUDA_ERROR_NO_DEVICE;
}

PHANTOM_API int cuMemFree_v2(void *address) { return cudaFree ? cudaFree(address) : CUDA_ERROR_NO_DEVICE; }

PHANTOM_API int cuMemHostAlloc(void **address, size_t bytes, unsigned flags) {
    return cudaHostAlloc ? cudaHostAlloc(address, bytes, flags) : CUDA_ERROR_NO_DEVICE;
}

PHANTOM_API int cuMemFreeHost(void *address) { return cudaFreeHost ? cudaFreeHost(address) : CUDA_ERROR_NO_DEVICE; }

PHANTOM_API int cuMemcpyHtoD_v2(void *to, const void *from, size_t bytes) {
    return cudaMemcpy ? cudaMemcpy(to, from, bytes, 1) : CUDA_ERROR_NO_DEVICE;
}

PHANTOM_API int cuMemcpyDtoH_v2(void *to, const void *from, size_t bytes) {
    return cudaMemcpy ? cudaMemcpy(to, from, bytes, 2) : CUDA_ERROR_NO_DEVICE;
}

PHANTOM_API int cuMemcpyHtoDAsync_v2(void *to, const void *from, size_t bytes, void *stream) {
    (void)stream;
    return cuMemcpyHtoD_v2(to, from, bytes);
}

PHANTOM_API int cuMemcpyDtoHAsync_v2(void *to, const void *from, size_t bytes, void *stream) {
    (void)stream;
    return cuMemcpyDtoH_v2(to, from, bytes);
}

PHANTOM_API int cuMemGetAllocationGranularity(size_t *bytes, const void *property, int option) {
    USES_CUDA;
    (void)property, (void)option;
    *bytes = 2u << 20;
    return CUDA_SUCCESS;
}

PHANTOM_API int cuMemAddressReserve(void **address, size_t bytes, size_t alignment, void *wish,
                                    unsigned long long flags) {
    USES_CUDA;
    (void)alignment, (void)wish, (void)flags;
    return phantom_virtual_reserve ? phantom_virtual_reserve(address, bytes) : CUDA_ERROR_NO_DEVICE;
}

PHANTOM_API int cuMemAddressFree(void *address, size_t bytes) {
    USES_CUDA;
    (void)bytes;
    return phantom_virtual_free ? phantom_virtual_free(address) : CUDA_ERROR_NO_DEVICE;
}

PHANTOM_API int cuMemCreate(void **handle, size_t bytes, const struct allocation_property *property,
                            unsigned long long flags) {
    USES_CUDA;
    (void)flags;
    return phantom_physical_create ? phantom_physical_create(handle, bytes, property->location_id)
                                   : CUDA_ERROR_NO_DEVICE;
}

PHANTOM_API int cuMemRelease(void *handle) {
    USES_CUDA;
    return phantom_physical_release ? phantom_physical_release(handle) : CUDA_ERROR_NO_DEVICE;
}

PHANTOM_API int cuMemMap(void *address, size_t bytes, size_t offset, void *handle, unsigned long long flags) {
    USES_CUDA;
    (void)offset, (void)flags;
    return phantom_virtual_map ? phantom_virtual_map(address, bytes, handle) : CUDA_ERROR_NO_DEVICE;
}

PHANTOM_API int cuMemUnmap(void *address, size_t bytes) {
    USES_CUDA;
    return phantom_virtual_unmap ? phantom_virtual_unmap(address, bytes) : CUDA_ERROR_NO_DEVICE;
}

PHANTOM_API int cuMemGetAddressRange_v2(void **start, size_t *bytes, const void *address) {
    USES_CUDA;
    return phantom_address_range ? phantom_address_range(start, bytes, address) : CUDA_ERROR_NO_DEVICE;
}

/* CUpointer_attribute: 1 context, 2 memory type, 3 device pointer, 4 host pointer, 9 device ordinal */
PHANTOM_API int cuPointerGetAttribute(void *value, int attribute, const void *address) {
    USES_CUDA;
    int device = phantom_device_of ? phantom_device_of(address) : -1;
    if (device < 0 && attribute != 4)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case 1: *(void **)value = (void *)(uintptr_t)(0x1000 + 16 * device); return CUDA_SUCCESS;
    case 2: *(unsigned *)value = 2; return CUDA_SUCCESS; /* CU_MEMORYTYPE_DEVICE */
    case 3:
    case 4: *(const void **)value = address; return CUDA_SUCCESS;
    case 9: *(int *)value = device; return CUDA_SUCCESS;
    default: *(int *)value = 0; return CUDA_SUCCESS;
    }
}

PHANTOM_API int cuPointerGetAttributes(unsigned count, const int *attributes, void **values, const void *address) {
    USES_CUDA;
    for (unsigned i = 0; i < count; i++)
        if (cuPointerGetAttribute(values[i], attributes[i], address))
            *(void **)values[i] = NULL;
    return CUDA_SUCCESS;
}
