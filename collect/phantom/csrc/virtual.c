/* Virtual memory management, which torch's expandable segments use through the driver: a reserved address range takes
 * none of the device's memory, a physical handle takes its bytes. */
#include "phantom.h"

#include <pthread.h>
#include <stdlib.h>

#define __CUDA_INTERNAL_SKIP_CPP_HEADERS__
#include <driver_types.h>

struct physical {
    int device;
    int references; /* the handle itself and each mapping of it */
    uint64_t bytes;
};

struct mapping {
    struct mapping *next;
    char *from;
    uint64_t bytes;
    struct physical *physical;
};

static struct mapping *mappings;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int phantom_virtual_reserve(void **address, size_t bytes) {
    *address = phantom_arena_reserve(phantom_current_device(), bytes);
    return *address ? cudaSuccess : cudaErrorMemoryAllocation;
}

int phantom_virtual_free(void *address) { return phantom_arena_give(address) ? cudaSuccess : cudaErrorInvalidValue; }

int phantom_physical_create(void **handle, size_t bytes, int device) {
    if (device < 0 || device >= phantom_device_count())
        return cudaErrorInvalidDevice;
    if (!phantom_charge(device, bytes))
        return cudaErrorMemoryAllocation;
    struct physical *physical = malloc(sizeof *physical);
    if (!physical) {
        phantom_discharge(device, bytes);
        return cudaErrorMemoryAllocation;
    }
    *physical = (struct physical){device, 1, bytes};
    *handle = physical;
    return cudaSuccess;
}

static void let_go(struct physical *physical) {
    if (--physical->references)
        return;
    phantom_discharge(physical->device, physical->bytes);
    free(physical);
}

int phantom_physical_release(void *handle) {
    pthread_mutex_lock(&lock);
    let_go(handle);
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

/* As on a device, memory lives until its handle is released and its last mapping is gone. */
int phantom_virtual_map(void *address, size_t bytes, void *handle) {
    struct mapping *mapping = malloc(sizeof *mapping);
    if (!mapping)
        return cudaErrorMemoryAllocation;
    pthread_mutex_lock(&lock);
    *mapping = (struct mapping){mappings, address, bytes, handle};
    mappings = mapping;
    mapping->physical->references++;
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

int phantom_virtual_unmap(void *address, size_t bytes) {
    char *from = address;
    pthread_mutex_lock(&lock);
    for (struct mapping **m = &mappings; *m;) {
        struct mapping *mapping = *m;
        if (mapping->from < from || mapping->from + mapping->bytes > from + bytes) {
            m = &mapping->next;
            continue;
        }
        *m = mapping->next;
        phantom_drop_pages(mapping->from, mapping->bytes);
        let_go(mapping->physical);
        free(mapping);
    }
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

int phantom_address_range(void **start, size_t *bytes, const void *address) {
    uint64_t size;
    if (!phantom_arena_region(address, start, &size))
        return cudaErrorInvalidValue;
    *bytes = size;
    return cudaSuccess;
}
