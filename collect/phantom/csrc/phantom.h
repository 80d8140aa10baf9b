/* The phantom GPU: a CUDA library without a device, loaded before the real one.
 *
 * torch's caching allocator, autograd and memory history run unchanged on top of it. Only kernels, large copies and
 * the memory behind cudaMalloc are fake. The sources of libphantom.so share this header. libcuda.so.1 and
 * libnvidia-ml.so.1 see it through weak references, so that they say "no device" when libphantom.so is not loaded.
 *
 * Struct layouts (cudaDeviceProp, cudaFuncAttributes, cudaPointerAttributes) differ between CUDA majors. At compile
 * time they come from <driver_types.h> of the CUDA runtime that belongs to the user's torch. */
#ifndef PHANTOM_H
#define PHANTOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PHANTOM_API __attribute__((visibility("default")))
#define PHANTOM_MAX_DEVICES 8

/* ---- profile.c: the properties of the device that the phantom GPU presents */

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
    char addresses[16]; /* the address policy if PHANTOM_ADDR names none: arena.c */
    /* Whether recordings of this device show the engines that cuDNN withholds without a device: withheld.c. */
    int64_t withheld;
    /* For each size of a cluster, how many such clusters of multiprocessors are resident at once; 0 if unknown. */
    int64_t clusters[17];
#define PHANTOM_FIELD(property) int64_t property;
    PHANTOM_PROPERTIES(PHANTOM_FIELD)
    PHANTOM_KERNELS(PHANTOM_FIELD)
#undef PHANTOM_FIELD
};

/* The profile in the file that PHANTOM_PROFILE names, read once. A process without a valid profile exits with a
 * message: it asked for a phantom GPU, and a made-up device would be worse than none. */
PHANTOM_API const struct phantom_profile *phantom_profile(void);

/* ---- environment.c: the PHANTOM_* variables */

bool phantom_debug(void);
/* The number of devices that CUDA_VISIBLE_DEVICES makes visible, among PHANTOM_DEVICES devices (1 if unset). The
 * variable is read at the first use, as by the real driver. */
PHANTOM_API int phantom_device_count(void);
/* The number of devices regardless of CUDA_VISIBLE_DEVICES, which NVML ignores. */
PHANTOM_API int phantom_physical_device_count(void);
/* The physical index of the device that has this visible index. */
PHANTOM_API int phantom_physical_device(int device);
PHANTOM_API void phantom_device_uuid(int physical, unsigned char uuid[16]);
/* The first function returns the most bytes that cudaMalloc can hand out, the second the total that the device
 * reports. */
uint64_t phantom_usable_bytes(void);
uint64_t phantom_total_bytes(void);
/* Copies and fills of at most this many bytes are really done (PHANTOM_COPY, else 64 KiB). */
size_t phantom_copy_limit(void);

/* ---- fork.c */

/* Remembers that this process uses CUDA. Returns whether its parent had used CUDA before it forked this process. */
PHANTOM_API bool phantom_lost(void);
#define PHANTOM_USES_CUDA                        \
    do {                                         \
        if (phantom_lost())                      \
            return cudaErrorInitializationError; \
    } while (0)

/* ---- notes.c: what the phantom GPU guessed or could not answer */

/* Remembers the note `what` once. With PHANTOM_DEBUG it also prints the note. */
PHANTOM_API void phantom_note(const char *what);
/* For a CUDA call that the phantom GPU cannot answer: adds a note and prints it to stderr, once for each name. Returns
 * `status`. */
PHANTOM_API int phantom_refuse(const char *name, int status);
/* For a CUDA call that does nothing here. With PHANTOM_DEBUG it prints each name once. Returns `status`. */
PHANTOM_API int phantom_ignore(const char *name, int status);
/* Writes all notes so far to the buffer, one per line (cut at size, always terminated). Returns the bytes needed. */
PHANTOM_API size_t phantom_notes(char *buffer, size_t size);

/* ---- foreign.c: which libraries launch kernels */

/* Returns false if `code` belongs to a library whose kernels the phantom GPU knows. Otherwise it adds a note that names
   the library, and returns true. */
PHANTOM_API bool phantom_launched_from(const void *code);

/* ---- written.c: what kernels of unknown libraries may have written */

/* Sets a function that is called with the device addresses that a kernel may have written, or with NULL if it may have
 * written any. */
PHANTOM_API void phantom_on_written(void (*call)(const void *const *addresses, size_t count));
/* Reports what a kernel with these arguments may have written. The arguments have the form that cuLaunchKernel
 * takes. */
PHANTOM_API void phantom_launched_with(void *const *arguments, void *const *packed);

/* ---- nccl.c */

/* Returns how many ranks took part in this thread's last reduction or broadcast since the last call of this function (1
 * for the root of a broadcast), and gives NCCL's number of the reduction's operation. */
PHANTOM_API int phantom_reduction(int *operation);

/* ---- arena.c: addresses; callers hold no lock */

/* Takes `bytes` bytes of a device's address space under the address policy; NULL if no place is left. */
void *phantom_arena_take(int device, uint64_t bytes);
/* Takes addresses for a reserved virtual range, from the lower half of the arena, which no policy uses. */
void *phantom_arena_reserve(int device, uint64_t bytes);
/* The uses of a device that make the driver take memory for itself. phantom_arena_used is called at such a use. */
enum phantom_use {
    PHANTOM_FIRST_KERNEL,
    PHANTOM_LOCAL_MEMORY_FREED,
    PHANTOM_MORE_CODE,
    PHANTOM_CUBLAS_HANDLE,
    PHANTOM_CONTEXT, /* at a device's first address */
};
void phantom_arena_used(int device, enum phantom_use use);
/* To be called at each launch on the current device. */
PHANTOM_API void phantom_launched(const void *kernel);
/* Gives an address back, drops its pages and returns how many bytes it had; 0 if the address was not handed out. */
uint64_t phantom_arena_give(void *address);
/* The device to which an address belongs, or -1 for an address of the host. */
PHANTOM_API int phantom_device_of(const void *address);
/* Finds the region that contains an address. Returns false if the address was not handed out. */
bool phantom_arena_region(const void *address, void **start, uint64_t *bytes);
/* Drops the pages of a range, so that it reads as zeros. */
void phantom_drop_pages(void *address, uint64_t bytes);

/* ---- shared.c: what the processes of a run hold of each device */

/* Counts `bytes` bytes as taken from the device's memory. Returns false, and counts nothing, if they do not fit. */
PHANTOM_API bool phantom_charge(int device, uint64_t bytes);
PHANTOM_API void phantom_discharge(int device, uint64_t bytes);
/* The bytes of the device that no process holds. */
uint64_t phantom_free_bytes(int device);

/* ---- virtual.c: reserved ranges and physical handles (expandable segments), called by the stub libcuda.so.1 */

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

/* Copies bytes if they are few or go from host to host. A read of unknown values from the device gives zeros. */
void phantom_copy(void *to, const void *from, size_t bytes);
/* The next reads of at most 8 bytes from the device in this thread return `value` (1-byte reads return 1 for any
 * but 0), until it is set to -1. It serves operators that read the size of their output back from the device: set the
 * answer around the operator, on the thread that runs it. */
PHANTOM_API void phantom_answer(int64_t value);
/* From now on a read from the device returns zeros, unless an answer was set for it or its thread announced it. The
 * code in values/, which tells known values from unknown ones, announces the reads of the kernels that it wraps. No
 * kernel computed the values that other code reads. */
PHANTOM_API void phantom_strict_reads(void);
PHANTOM_API void phantom_announce_reads(int more);
/* Announces reads of known values, which are copied however large they are. */
PHANTOM_API void phantom_announce_known(int more);
/* How many reads from the device to the host this process has made without an answer set for them. */
PHANTOM_API int64_t phantom_reads(void);

/* ---- device.c */

PHANTOM_API int phantom_current_device(void);
PHANTOM_API int phantom_set_current_device(int device);

/* ---- stream.c */

/* 1 while the stream is being captured, directly or since it joined a capture by waiting for an event. */
PHANTOM_API int phantom_is_capturing(const void *stream);
/* How many captures are running, on any stream. */
PHANTOM_API int phantom_captures_running(void);
/* Begins a capture and returns its id, or 0 if the host has no memory left. */
unsigned long long phantom_capture_begin(void *stream);
/* Returns the id of the stream's capture, or 0 if the stream is not being captured. Gives the graph so far, and the
 * nodes that the stream's next node will follow; this list is valid until the thread's next call on this stream. */
unsigned long long phantom_capture_id(const void *stream, void **graph, void **nodes, size_t *count);
/* Ends the capture and returns its graph, which the caller then owns. */
void *phantom_capture_end(const void *stream);
/* To be called for each piece of work on a stream. It adds a node if the stream is being captured. */
PHANTOM_API void phantom_works(const void *stream);
/* To be called for work on an unknown stream, mostly a library's. */
void phantom_works_somewhere(void);
/* Makes the stream's work so far end so many nanoseconds later. No other work takes time. */
void phantom_sleeps(const void *stream, uint64_t nanoseconds);

/* ---- nodes.c: the nodes of captured graphs */

struct phantom_node {
    size_t count;
    struct phantom_node *after[];
};

struct phantom_graph {
    struct phantom_node **nodes;
    size_t count, room;
    uint64_t work_before; /* how much work libraries had submitted in the process when the capture began */
    bool libraries;       /* whether libraries submitted more until the capture ended */
};

/* Adds a node that follows the nodes `after`. Returns NULL if the host has no memory left. */
struct phantom_node *phantom_graph_add(struct phantom_graph *graph, struct phantom_node *const *after, size_t count);

#endif
