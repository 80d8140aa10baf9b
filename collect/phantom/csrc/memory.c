/* cudaMalloc and related functions take addresses from the arena and count their bytes against the device's memory. */
#include "phantom.h"

#define __CUDA_INTERNAL_SKIP_CPP_HEADERS__
#include <driver_types.h>

PHANTOM_API cudaError_t cudaMalloc(void **address, size_t bytes) {
    PHANTOM_USES_CUDA;
    int device = phantom_current_device();
    *address = NULL;
    if (!phantom_device_count())
        return cudaErrorNoDevice;
    if (!bytes)
        return cudaSuccess;
    /* The driver hands out memory in pages of 2 MiB. Requests below 1 MiB share a page; torch makes none so small. */
    uint64_t granule = bytes < (1u << 20) ? 512 : 2u << 20;
    if (bytes > UINT64_MAX / 2)
        return cudaErrorMemoryAllocation;
    uint64_t size = (bytes + granule - 1) / granule * granule;
    if (!phantom_charge(device, size))
        return cudaErrorMemoryAllocation;
    *address = phantom_arena_take(device, size);
    if (*address)
        return cudaSuccess;
    phantom_discharge(device, size);
    return cudaErrorMemoryAllocation;
}

PHANTOM_API cudaError_t cudaFree(void *address) {
    PHANTOM_USES_CUDA;
    if (!address)
        return cudaSuccess;
    int device = phantom_device_of(address);
    uint64_t bytes = phantom_arena_give(address);
    if (!bytes)
        return cudaErrorInvalidValue;
    phantom_discharge(device, bytes);
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaMallocManaged(void **address, size_t bytes, unsigned flags) {
    (void)flags;
    return cudaMalloc(address, bytes);
}

PHANTOM_API cudaError_t cudaMallocAsync(void **address, size_t bytes, void *stream) {
    (void)stream;
    phantom_note("cudaMallocAsync: the phantom GPU has no memory pool and counts each request by itself");
    return cudaMalloc(address, bytes);
}

PHANTOM_API cudaError_t cudaFreeAsync(void *address, void *stream) {
    (void)stream;
    return cudaFree(address);
}

PHANTOM_API cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    PHANTOM_USES_CUDA;
    if (!phantom_device_count())
        return cudaErrorNoDevice;
    *total_bytes = phantom_total_bytes();
    *free_bytes = phantom_free_bytes(phantom_current_device());
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *address) {
    PHANTOM_USES_CUDA;
    *attributes = (struct cudaPointerAttributes){0};
    int device = phantom_device_of(address);
    if (device >= 0) {
        attributes->type = cudaMemoryTypeDevice;
        attributes->device = device;
        attributes->devicePointer = (void *)address;
    } else if (phantom_is_pinned(address)) {
        attributes->type = cudaMemoryTypeHost;
        attributes->device = phantom_current_device();
        attributes->devicePointer = attributes->hostPointer = (void *)address;
    } else {
        attributes->type = cudaMemoryTypeUnregistered;
        attributes->device = -1;
        attributes->hostPointer = (void *)address;
    }
    return cudaSuccess;
}

/* Gives a global variable of device code an address. The variable takes no memory of its own, since it is part of the
 * context. */
PHANTOM_API cudaError_t cudaGetSymbolAddress(void **address, const void *symbol) {
    PHANTOM_USES_CUDA;
    (void)symbol;
    int device = phantom_current_device();
    static void *pages[PHANTOM_MAX_DEVICES];
    void *page = __atomic_load_n(&pages[device], __ATOMIC_ACQUIRE);
    if (!page) {
        page = phantom_arena_reserve(device, 1u << 20);
        __atomic_store_n(&pages[device], page, __ATOMIC_RELEASE);
    }
    *address = page;
    return page ? cudaSuccess : cudaErrorMemoryAllocation;
}

PHANTOM_API cudaError_t cudaDeviceGetDefaultMemPool(void **pool, int device) {
    PHANTOM_USES_CUDA;
    *pool = (void *)(uintptr_t)(0x7000 + device);
    return cudaSuccess;
}
