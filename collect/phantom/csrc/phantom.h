/* The phantom GPU: a CUDA library without a device, loaded before the real one.
 *
 * torch's caching allocator, autograd and memory history run unchanged on top of it. Only kernels, large copies and
 * the memory behind cudaMalloc are fake. The sources of libphantom.so share this header. libcuda.so.1 and
 * libnvidia-ml.so.1 see it through weak references, so that they say "no device" when libphantom.so is not loaded.
 *
 * Struct layouts (cudaDeviceProp, cudaFuncAttributes, cudaPointerAttributes) differ between CUDA majors. They come,
 * at compile time, from <driver_types.h> of the CUDA runtime that belongs to the user's torch. */
#ifndef PHANTOM_H
#define PHANTOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PHANTOM_API __attribute__((visibility("default")))
#define PHANTOM_MAX_DEVICES 8

/* ---- profile.c: the properties of the device that is played */

#define PHANTOM_PROPERTIES(P)                    \
    P(total_memory_bytes)                        \
    P(context_bytes)                             \
    P(driver_version)                            \
    P(compute_major)                             \
    P(compute_minor)                             \
    P(multiprocessors)                           \
    P(warp_size)                                 \
    P(max_threads_per_block)                     \
    P(max_threads_per_multiprocessor)            \
    P(max_blocks_per_multiprocessor)             \
    P(max_block_dim_x)                           \
    P(max_block_dim_y)                           \
    P(max_block_dim_z)                           \
    P(max_grid_dim_x)                            \
    P(max_grid_dim_y)                            \
    P(max_grid_dim_z)                            \
    P(shared_memory_per_block_bytes)             \
    P(shared_memory_per_block_optin_bytes)       \
    P(shared_memory_per_multiprocessor_bytes)    \
    P(reserved_shared_memory_per_block_bytes)    \
    P(registers_per_block)                       \
    P(registers_per_multiprocessor)              \
    P(constant_memory_bytes)                     \
    P(memory_pitch_bytes)                        \
    P(texture_alignment_bytes)                   \
    P(texture_pitch_alignment_bytes)             \
    P(memory_bus_width_bits)                     \
    P(memory_clock_khz)                          \
    P(core_clock_khz)                            \
    P(l2_cache_bytes)                            \
    P(persisting_l2_cache_bytes)                 \
    P(async_engines)                             \
    P(ecc)                                       \
    P(multicast)

/* The versions that a kernel of torch reports on the device, as 10 * major + minor: of its PTX and of its binary
 * code. They equal the device's capability only if torch was built for that. CUB looks up the PTX version among
 * those that it was compiled for, and fails on any other. */
#define PHANTOM_KERNELS(K)   \
    K(kernel_ptx_version)    \
    K(kernel_binary_version)

struct phantom_profile {
    char name[256];
    char addresses[16]; /* the address policy where PHANTOM_ADDR names none: arena.c */
    /* Whether the engines that cuDNN withholds without a device were seen to run there: withheld.c. */
    int64_t withheld;
    /* By size, how many clusters of multiprocessors are resident at once; 0 if unknown. */
    int64_t clusters[17];
#define PHANTOM_FIELD(property) int64_t property;
    PHANTOM_PROPERTIES(PHANTOM_FIELD)
    PHANTOM_KERNELS(PHANTOM_FIELD)
#undef PHANTOM_FIELD
};

/* The profile named by PHANTOM_PROFILE, read once. A process without one, or with a broken one, exits with a
 * message: it asked for a phantom GPU, and a made-up device would be worse than none. */
PHANTOM_API const struct phantom_profile *phantom_profile(void);

/* ---- environment.c: the PHANTOM_* variables */

bool phantom_debug(void);
/* Devices that CUDA_VISIBLE_DEVICES leaves of PHANTOM_DEVICES (1 if unset), read at the first use as the real driver
 * does. */
PHANTOM_API int phantom_device_count(void);
/* The same without CUDA_VISIBLE_DEVICES, which NVML ignores. */
PHANTOM_API int phantom_physical_device_count(void);
/* The physical index behind a visible one. */
PHANTOM_API int phantom_physical_device(int device);
PHANTOM_API void phantom_device_uuid(int physical, unsigned char uuid[16]);
/* Bytes that cudaMalloc can hand out at most, and that the device reports as its total. */
uint64_t phantom_usable_bytes(void);
uint64_t phantom_total_bytes(void);
/* Copies and fills of at most this many bytes are really done (PHANTOM_COPY, else 64 KiB). */
size_t phantom_copy_limit(void);

/* ---- fork.c */

/* Notes that CUDA is used, and whether this is the child of a process that had used it before it forked. */
PHANTOM_API bool phantom_lost(void);
#define PHANTOM_USES_CUDA                        \
    do {                                         \
        if (phantom_lost())                      \
            return cudaErrorInitializationError; \
    } while (0)

/* ---- notes.c: what was guessed or could not be answered */

/* Remembers `what` once; with PHANTOM_DEBUG it is printed too. */
PHANTOM_API void phantom_note(const char *what);
/* For a call that cannot be answered: remembers it and says so on stderr, once a name. Returns `status`. */
PHANTOM_API int phantom_refuse(const char *name, int status);
/* For a call that does nothing here; printed once a name with PHANTOM_DEBUG. Returns `status`. */
PHANTOM_API int phantom_ignore(const char *name, int status);
/* All notes so far, one per line, written to buffer (cut at size, always terminated). Returns the bytes needed. */
PHANTOM_API size_t phantom_notes(char *buffer, size_t size);

/* ---- foreign.c: who launches kernels */

/* Notes the library that contains this code and returns true. If its kernels are expected to run here, it returns
   false. */
PHANTOM_API bool phantom_launched_from(const void *code);

/* ---- written.c: what such kernels may have written */

/* Sets a function that is called with addresses of a device that may have been written; with NULL for all of them. */
PHANTOM_API void phantom_on_written(void (*call)(const void *const *addresses, size_t count));
/* A kernel's arguments as cuLaunchKernel takes them. */
PHANTOM_API void phantom_launched_with(void *const *arguments, void *const *packed);

/* ---- nccl.c */

/* How many ranks took part in this thread's last reduction or broadcast since the last call (1 for the root of a
 * broadcast), and NCCL's number of its operation. */
PHANTOM_API int phantom_reduction(int *operation);

/* ---- arena.c: addresses; callers hold no lock */

/* Reserves bytes of address space on a device under the address policy; 0 if there is none left. */
void *phantom_arena_take(int device, uint64_t bytes);
/* The same from the lower half, which the policies never use: for reserved virtual ranges. */
void *phantom_arena_reserve(int device, uint64_t bytes);
/* Sets a function that is called when a device is used in a way that makes the driver take memory of its own. */
enum phantom_use {
    PHANTOM_FIRST_KERNEL,
    PHANTOM_LOCAL_MEMORY_FREED,
    PHANTOM_MORE_CODE,
    PHANTOM_CUBLAS_HANDLE,
    PHANTOM_CONTEXT, /* at a device's first address */
};
void phantom_arena_used(int device, enum phantom_use use);
/* Sets a function that is called at each launch on the current device. */
PHANTOM_API void phantom_launched(const void *kernel);
/* Gives an address back, drops its pages and returns its bytes; 0 when it was not handed out. */
uint64_t phantom_arena_give(void *address);
/* The device an address belongs to, or -1 for the host's. */
PHANTOM_API int phantom_device_of(const void *address);
/* The region that holds an address; false when it was not handed out. */
bool phantom_arena_region(const void *address, void **start, uint64_t *bytes);
/* Drops the pages of a range, so that it reads as zeros. */
void phantom_drop_pages(void *address, uint64_t bytes);

/* ---- shared.c: what the processes of a run hold of each device */

/* Counts physical memory against the device's; false when it would not fit. */
PHANTOM_API bool phantom_charge(int device, uint64_t bytes);
PHANTOM_API void phantom_discharge(int device, uint64_t bytes);
/* What is free on the device, for any process. */
uint64_t phantom_free_bytes(int device);

/* ---- virtual.c: reserved ranges and physical handles (expandable segments), called by the driver */

PHANTOM_API int phantom_virtual_reserve(void **address, size_t bytes);
PHANTOM_API int phantom_virtual_free(void *address);
PHANTOM_API int phantom_physical_create(void **handle, size_t bytes, int device);
PHANTOM_API int phantom_physical_release(void *handle);
PHANTOM_API int phantom_virtual_map(void *address, size_t bytes, void *handle);
PHANTOM_API int phantom_virtual_unmap(void *address, size_t bytes);
PHANTOM_API int phantom_address_range(void **start, size_t *bytes, const void *address);

/* ---- host.c */

bool phantom_is_pinned(const void *address);

/* ---- copy.c */

/* Copies as a device would: really if small or from host to host, and zeros for unknown values. */
void phantom_copy(void *to, const void *from, size_t bytes);
/* The next reads of at most 8 bytes from the device in this thread return `value` (1-byte reads return 1 for any
 * but 0), until it is set to -1. It serves operators whose output size is read back from the device: set it around
 * the operator, on the thread that runs it. */
PHANTOM_API void phantom_answer(int64_t value);
/* From now on a read from the device returns zeros, unless an answer was set for it or its thread announced it. The
 * code that tells known values from unknown ones (values/) announces the reads of its own kernels. Values that
 * other code reads were computed by no kernel. */
PHANTOM_API void phantom_strict_reads(void);
PHANTOM_API void phantom_announce_reads(int more);
/* Announced reads of known values, which are copied however large. */
PHANTOM_API void phantom_announce_known(int more);
/* Reads from the device to the host so far in this process that no answer was set for. */
PHANTOM_API int64_t phantom_reads(void);

/* ---- device.c */

PHANTOM_API int phantom_current_device(void);
PHANTOM_API int phantom_set_current_device(int device);

/* ---- stream.c */

/* 1 while the stream (or, by joining through events, its origin) is being captured. */
PHANTOM_API int phantom_is_capturing(const void *stream);
/* How many captures are going on, on any stream. */
PHANTOM_API int phantom_captures_running(void);
/* 0 if there is no memory for it. */
unsigned long long phantom_capture_begin(void *stream);
/* 0 when the stream is not being captured. The graph so far, and the nodes that the stream's next node will follow,
 * which stay as they are until the thread's next call on this stream. */
unsigned long long phantom_capture_id(const void *stream, void **graph, void **nodes, size_t *count);
/* The graph is the caller's. */
void *phantom_capture_end(const void *stream);
/* Work on a stream: a node if the stream is being captured. */
PHANTOM_API void phantom_works(const void *stream);
/* Work on a stream that is not known: a library's, mostly. */
void phantom_works_somewhere(void);
/* The stream's work so far ends that much later. Only this takes time. */
void phantom_sleeps(const void *stream, uint64_t nanoseconds);

/* ---- nodes.c: what was captured */

struct phantom_node {
    size_t count;
    struct phantom_node *after[];
};

struct phantom_graph {
    struct phantom_node **nodes;
    size_t count, room;
    uint64_t work_before; /* of libraries, in the whole process, when the capture began */
    bool libraries;       /* there was some until its end */
};

/* NULL if there is no memory for it. */
struct phantom_node *phantom_graph_add(struct phantom_graph *graph, struct phantom_node *const *after, size_t count);

#endif
