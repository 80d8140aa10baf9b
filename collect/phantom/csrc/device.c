/* Devices and their properties. */
#include "phantom.h"

#include <stdio.h>
#include <string.h>

#define __CUDA_INTERNAL_SKIP_CPP_HEADERS__
#include <driver_types.h>

static __thread int current;

int phantom_current_device(void) { return current; }

int phantom_set_current_device(int device) {
    if (!phantom_device_count())
        return cudaErrorNoDevice;
    if (device < 0 || device >= phantom_device_count())
        return cudaErrorInvalidDevice;
    current = device;
    return cudaSuccess;
}

static cudaError_t check(int device) {
    if (!phantom_device_count())
        return cudaErrorNoDevice;
    return device < 0 || device >= phantom_device_count() ? cudaErrorInvalidDevice : cudaSuccess;
}

PHANTOM_API cudaError_t cudaGetDeviceCount(int *count) {
    PHANTOM_USES_CUDA;
    *count = phantom_device_count();
    return *count ? cudaSuccess : cudaErrorNoDevice;
}

PHANTOM_API cudaError_t cudaGetDevice(int *device) {
    PHANTOM_USES_CUDA;
    *device = current;
    return phantom_device_count() ? cudaSuccess : cudaErrorNoDevice;
}

PHANTOM_API cudaError_t cudaSetDevice(int device) {
    PHANTOM_USES_CUDA;
    return (cudaError_t)phantom_set_current_device(device);
}

PHANTOM_API cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = PHANTOM_CUDART_VERSION;
    return cudaSuccess;
}

/* Reports at least the version of the user's CUDA runtime: torch refuses a device whose driver is older, and the real
 * device must have a driver that is new enough. */
PHANTOM_API cudaError_t cudaDriverGetVersion(int *version) {
    int profile = (int)phantom_profile()->driver_version;
    *version = profile > PHANTOM_CUDART_VERSION ? profile : PHANTOM_CUDART_VERSION;
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    PHANTOM_USES_CUDA;
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    PHANTOM_USES_CUDA;
    *can = device != peer;
    cudaError_t status = check(device);
    return status ? status : check(peer);
}

PHANTOM_API cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
    PHANTOM_USES_CUDA;
    (void)flags;
    return check(peer);
}

PHANTOM_API cudaError_t cudaDeviceGetPCIBusId(char *text, int size, int device) {
    PHANTOM_USES_CUDA;
    snprintf(text, (size_t)size, "0000:%02X:00.0", phantom_physical_device(device) + 1);
    return check(device);
}

PHANTOM_API cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device) {
    PHANTOM_USES_CUDA;
    cudaError_t status = check(device);
    if (status)
        return status;
    const struct phantom_profile *profile = phantom_profile();
    int physical = phantom_physical_device(device);
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "%s", profile->name);
    phantom_device_uuid(physical, (unsigned char *)p->uuid.bytes);
    p->pciBusID = physical + 1;
    p->totalGlobalMem = phantom_total_bytes();
    p->major = (int)profile->compute_major;
    p->minor = (int)profile->compute_minor;
    p->multiProcessorCount = (int)profile->multiprocessors;
    p->warpSize = (int)profile->warp_size;
    p->maxThreadsPerBlock = (int)profile->max_threads_per_block;
    p->maxThreadsPerMultiProcessor = (int)profile->max_threads_per_multiprocessor;
    p->maxBlocksPerMultiProcessor = (int)profile->max_blocks_per_multiprocessor;
    p->maxThreadsDim[0] = (int)profile->max_block_dim_x;
    p->maxThreadsDim[1] = (int)profile->max_block_dim_y;
    p->maxThreadsDim[2] = (int)profile->max_block_dim_z;
    p->maxGridSize[0] = (int)profile->max_grid_dim_x;
    p->maxGridSize[1] = (int)profile->max_grid_dim_y;
    p->maxGridSize[2] = (int)profile->max_grid_dim_z;
    p->sharedMemPerBlock = (size_t)profile->shared_memory_per_block_bytes;
    p->sharedMemPerBlockOptin = (size_t)profile->shared_memory_per_block_optin_bytes;
    p->sharedMemPerMultiprocessor = (size_t)profile->shared_memory_per_multiprocessor_bytes;
    p->reservedSharedMemPerBlock = (size_t)profile->reserved_shared_memory_per_block_bytes;
    p->regsPerBlock = (int)profile->registers_per_block;
    p->regsPerMultiprocessor = (int)profile->registers_per_multiprocessor;
    p->totalConstMem = (size_t)profile->constant_memory_bytes;
    p->memPitch = (size_t)profile->memory_pitch_bytes;
    p->textureAlignment = (size_t)profile->texture_alignment_bytes;
    p->texturePitchAlignment = (size_t)profile->texture_pitch_alignment_bytes;
    p->memoryBusWidth = (int)profile->memory_bus_width_bits;
    p->l2CacheSize = (int)profile->l2_cache_bytes;
    p->persistingL2CacheMaxSize = (int)profile->persisting_l2_cache_bytes;
    p->asyncEngineCount = (int)profile->async_engines;
    p->ECCEnabled = (int)profile->ecc;
    p->clusterLaunch = profile->compute_major >= 9;
    /* These properties are the same for all devices since Volta that torch supports. */
    p->canMapHostMemory = 1;
    p->concurrentKernels = 1;
    p->unifiedAddressing = 1;
    p->streamPrioritiesSupported = 1;
    p->globalL1CacheSupported = 1;
    p->localL1CacheSupported = 1;
    p->managedMemory = 1;
    p->concurrentManagedAccess = 1;
    p->computePreemptionSupported = 1;
    p->cooperativeLaunch = 1;
    p->hostRegisterSupported = 1;
    p->memoryPoolsSupported = 1;
    p->unifiedFunctionPointers = 1;
    return cudaSuccess;
}

/* The name of the same function in CUDA 12. */
PHANTOM_API cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp *p, int device) {
    return cudaGetDeviceProperties(p, device);
}

/* An attribute has the same number in the runtime and in the driver. These are attributes that only the driver has. */
enum driver_attribute {
    VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
    HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
    MEM_SYNC_DOMAIN_COUNT = 126,
    TENSOR_MAP_ACCESS_SUPPORTED = 127,
    MULTICAST_SUPPORTED = 132,
};

static int64_t attribute_of(int attribute, int device) {
    const struct phantom_profile *p = phantom_profile();
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: return p->max_threads_per_block;
    case cudaDevAttrMaxBlockDimX: return p->max_block_dim_x;
    case cudaDevAttrMaxBlockDimY: return p->max_block_dim_y;
    case cudaDevAttrMaxBlockDimZ: return p->max_block_dim_z;
    case cudaDevAttrMaxGridDimX: return p->max_grid_dim_x;
    case cudaDevAttrMaxGridDimY: return p->max_grid_dim_y;
    case cudaDevAttrMaxGridDimZ: return p->max_grid_dim_z;
    case cudaDevAttrMaxSharedMemoryPerBlock: return p->shared_memory_per_block_bytes;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return p->shared_memory_per_block_optin_bytes;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return p->shared_memory_per_multiprocessor_bytes;
    case cudaDevAttrReservedSharedMemoryPerBlock: return p->reserved_shared_memory_per_block_bytes;
    case cudaDevAttrTotalConstantMemory: return p->constant_memory_bytes;
    case cudaDevAttrWarpSize: return p->warp_size;
    case cudaDevAttrMaxPitch: return p->memory_pitch_bytes;
    case cudaDevAttrMaxRegistersPerBlock: return p->registers_per_block;
    case cudaDevAttrMaxRegistersPerMultiprocessor: return p->registers_per_multiprocessor;
    case cudaDevAttrClockRate: return p->core_clock_khz;
    case cudaDevAttrTextureAlignment: return p->texture_alignment_bytes;
    case cudaDevAttrTexturePitchAlignment: return p->texture_pitch_alignment_bytes;
    case cudaDevAttrMultiProcessorCount: return p->multiprocessors;
    case cudaDevAttrEccEnabled: return p->ecc;
    case cudaDevAttrPciBusId: return phantom_physical_device(device) + 1;
    case cudaDevAttrMemoryClockRate: return p->memory_clock_khz;
    case cudaDevAttrGlobalMemoryBusWidth: return p->memory_bus_width_bits;
    case cudaDevAttrL2CacheSize: return p->l2_cache_bytes;
    case cudaDevAttrMaxPersistingL2CacheSize: return p->persisting_l2_cache_bytes;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return p->max_threads_per_multiprocessor;
    case cudaDevAttrMaxBlocksPerMultiprocessor: return p->max_blocks_per_multiprocessor;
    case cudaDevAttrAsyncEngineCount: return p->async_engines;
    case cudaDevAttrComputeCapabilityMajor: return p->compute_major;
    case cudaDevAttrComputeCapabilityMinor: return p->compute_minor;
    case cudaDevAttrClusterLaunch:
    case TENSOR_MAP_ACCESS_SUPPORTED: return p->compute_major >= 9;
    case MEM_SYNC_DOMAIN_COUNT: return p->compute_major >= 9 ? 4 : 1;
    case MULTICAST_SUPPORTED: return p->multicast && phantom_physical_device_count() > 1;
    case cudaDevAttrGpuOverlap:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrGlobalL1CacheSupported:
    case cudaDevAttrLocalL1CacheSupported:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrComputePreemptionSupported:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrMemoryPoolsSupported:
    case VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED: return 1;
    }
    if (phantom_debug()) {
        char text[64];
        snprintf(text, sizeof text, "the phantom GPU answers device attribute %d with 0", attribute);
        phantom_note(text);
    }
    return 0;
}

PHANTOM_API cudaError_t cudaDeviceGetAttribute(int *value, int attribute, int device) {
    PHANTOM_USES_CUDA;
    cudaError_t status = check(device);
    if (!status)
        *value = (int)attribute_of(attribute, device);
    return status;
}

PHANTOM_API cudaError_t cudaGetLastError(void) { return cudaSuccess; }

PHANTOM_API cudaError_t cudaPeekAtLastError(void) { return cudaSuccess; }

struct error_text {
    cudaError_t error;
    const char *name, *text;
};

static struct error_text describe(cudaError_t error) {
    static const struct error_text known[] = {
        {cudaSuccess, "cudaSuccess", "no error"},
        {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
        {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
        {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
        {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
        {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
        {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
        {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
        {cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
         "pointer does not correspond to a registered memory region"},
        {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported by the phantom GPU"},
        {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
         "operation not permitted when stream is capturing"},
        {cudaErrorIllegalState, "cudaErrorIllegalState", "the operation cannot be performed in the present state"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].error == error)
            return known[i];
    return (struct error_text){error, "cudaErrorUnknown", "unknown error"};
}

PHANTOM_API const char *cudaGetErrorString(cudaError_t error) { return describe(error).text; }

PHANTOM_API const char *cudaGetErrorName(cudaError_t error) { return describe(error).name; }
