/* NCCL: every peer is assumed to be a copy of this rank, in another process or on another device of this process. Only
 * small buffers are really filled, since programs read such buffers back (flags, counts, hashes). The buffers that NCCL
 * itself takes on a device are not modelled. */
#include "phantom.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define __CUDA_INTERNAL_SKIP_CPP_HEADERS__
#include <driver_types.h>

extern cudaError_t cudaMalloc(void **address, size_t bytes);
extern cudaError_t cudaFree(void *address);

#define NCCL_SYSTEM_ERROR 2

struct comm {
    int ranks, rank;
};

/* NCCL's ncclUniqueId: 128 bytes, passed by value. */
struct unique_id {
    char bytes[128];
};

PHANTOM_API int ncclGetVersion(int *version) {
    void *real = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
    int (*ask)(int *) = real ? (int (*)(int *))dlsym(real, "ncclGetVersion") : NULL;
    if (ask)
        return ask(version);
    *version = 22700;
    return 0;
}

static int make(void **comm, int ranks, int rank) {
    struct comm *made = malloc(sizeof *made);
    if (!made)
        return NCCL_SYSTEM_ERROR;
    *made = (struct comm){ranks, rank};
    *comm = made;
    phantom_note("NCCL: the other ranks are copies of this rank, and the prediction lacks NCCL's own buffers");
    return 0;
}

PHANTOM_API int ncclGetUniqueId(struct unique_id *id) {
    memset(id, 7, sizeof *id);
    return 0;
}

PHANTOM_API const char *ncclGetErrorString(int error) { return error ? "phantom NCCL error" : "no error"; }

PHANTOM_API const char *ncclGetLastError(void *comm) {
    (void)comm;
    return "";
}

PHANTOM_API int ncclCommInitRank(void **comm, int ranks, struct unique_id id, int rank) {
    (void)id;
    return make(comm, ranks, rank);
}

PHANTOM_API int ncclCommInitRankConfig(void **comm, int ranks, struct unique_id id, int rank, void *config) {
    (void)id, (void)config;
    return make(comm, ranks, rank);
}

PHANTOM_API int ncclCommInitRankScalable(void **comm, int ranks, int rank, int ids, struct unique_id *id,
                                         void *config) {
    (void)ids, (void)id, (void)config;
    return make(comm, ranks, rank);
}

/* One process with a rank on each of its devices, as in torch.nn.DataParallel. */
PHANTOM_API int ncclCommInitAll(void **comms, int devices, const int *list) {
    (void)list;
    for (int rank = 0; rank < devices; rank++)
        if (make(&comms[rank], devices, rank) != 0)
            return NCCL_SYSTEM_ERROR;
    return 0;
}

PHANTOM_API int ncclCommShrink(void *comm, int *excluded, int count, void **made, void *config, int flags) {
    (void)config, (void)flags;
    int ranks = ((struct comm *)comm)->ranks - count, rank = ((struct comm *)comm)->rank, before = 0;
    for (int i = 0; i < count; i++)
        before += excluded[i] < rank;
    return make(made, ranks, rank - before);
}

/* Only the peers know which ranks have this color. The new communicator has all ranks of the old one, which is an upper
 * bound; torch asks only for their number. */
PHANTOM_API int ncclCommSplit(void *comm, int color, int key, void **made, void *config) {
    (void)color, (void)key, (void)config;
    return make(made, ((struct comm *)comm)->ranks, ((struct comm *)comm)->rank);
}

static int drop(void *comm) {
    free(comm);
    return 0;
}

PHANTOM_API int ncclCommDestroy(void *comm) { return drop(comm); }

PHANTOM_API int ncclCommAbort(void *comm) { return drop(comm); }

PHANTOM_API int ncclCommGetAsyncError(void *comm, int *error) {
    (void)comm;
    *error = 0;
    return 0;
}

PHANTOM_API int ncclCommCount(void *comm, int *ranks) {
    *ranks = ((struct comm *)comm)->ranks;
    return 0;
}

PHANTOM_API int ncclCommUserRank(void *comm, int *rank) {
    *rank = ((struct comm *)comm)->rank;
    return 0;
}

/* Registration makes nothing. The handle is set to NULL, since otherwise it would be an address by chance; the caller
 * only gives it back to NCCL. */
PHANTOM_API int ncclCommRegister(void *comm, void *buffer, size_t bytes, void **handle) {
    (void)comm, (void)buffer, (void)bytes;
    *handle = NULL;
    return 0;
}

PHANTOM_API int ncclCommWindowRegister(void *comm, void *buffer, size_t bytes, void **window, int flags) {
    (void)comm, (void)buffer, (void)bytes, (void)flags;
    *window = NULL;
    return 0;
}

#define NCCL_FIRST_OWN_OPERATION 5

PHANTOM_API int ncclRedOpCreatePreMulSum(int *operation, void *scalar, int type, int where, void *comm) {
    (void)scalar, (void)type, (void)where, (void)comm;
    *operation = NCCL_FIRST_OWN_OPERATION;
    return 0;
}

PHANTOM_API int ncclMemAlloc(void **address, size_t bytes) { return cudaMalloc(address, bytes); }

PHANTOM_API int ncclMemFree(void *address) { return cudaFree(address); }

/* ncclDataType_t: int8 uint8 int32 uint32 int64 uint64 float16 float32 float64 bfloat16 float8e4m3 float8e5m2 */
static size_t element_bytes(int type) {
    static const unsigned char bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return type >= 0 && type < (int)sizeof bytes ? bytes[type] : 4;
}

PHANTOM_API int ncclAllGather(const void *from, void *to, size_t count, int type, void *comm, void *stream) {
    phantom_works(stream);
    size_t bytes = count * element_bytes(type);
    for (int rank = 0; rank < ((struct comm *)comm)->ranks; rank++)
        phantom_copy((char *)to + (size_t)rank * bytes, from, bytes);
    return 0;
}

/* The number of ranks in this thread's last reduction or broadcast (1 at the root of a broadcast), and NCCL's number of
 * the reduction's operation. */
static __thread int reduced_ranks, reduced_by;

int phantom_reduction(int *operation) {
    int ranks = reduced_ranks;
    *operation = reduced_by;
    reduced_ranks = 0;
    return ranks;
}

static void reduced(void *comm, int operation) {
    reduced_ranks = ((struct comm *)comm)->ranks;
    reduced_by = operation;
}

static void sent(void *comm, int root) {
    reduced(comm, 0);
    if (root == ((struct comm *)comm)->rank)
        reduced_ranks = 1;
}

PHANTOM_API int ncclAllReduce(const void *from, void *to, size_t count, int type, int operation, void *comm,
                              void *stream) {
    phantom_works(stream);
    reduced(comm, operation);
    phantom_copy(to, from, count * element_bytes(type));
    return 0;
}

PHANTOM_API int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, void *comm, void *stream) {
    phantom_works(stream);
    sent(comm, root);
    phantom_copy(to, from, count * element_bytes(type));
    return 0;
}

PHANTOM_API int ncclBcast(void *buffer, size_t count, int type, int root, void *comm, void *stream) {
    (void)buffer, (void)count, (void)type, (void)stream;
    sent(comm, root);
    return 0;
}

PHANTOM_API int ncclReduce(const void *from, void *to, size_t count, int type, int operation, int root, void *comm,
                           void *stream) {
    phantom_works(stream);
    (void)root;
    reduced(comm, operation);
    if (to)
        phantom_copy(to, from, count * element_bytes(type));
    return 0;
}

PHANTOM_API int ncclReduceScatter(const void *from, void *to, size_t count, int type, int operation, void *comm,
                                  void *stream) {
    phantom_works(stream);
    (void)operation, (void)comm;
    phantom_copy(to, from, count * element_bytes(type));
    return 0;
}
