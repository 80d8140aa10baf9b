/* CUDA graphs: capturing runs the script once as usual, with the allocator told that a capture is on, and a replay does
 * nothing. So a graph is only an address, and what torch sees is the state of each stream (stream.c). */
#include "phantom.h"

#include <stdlib.h>

#define __CUDA_INTERNAL_SKIP_CPP_HEADERS__
#include <driver_types.h>

/* torch's allocator asks for the graph of a running capture, and never looks into it. */
static char running_graph, instance;

PHANTOM_API cudaError_t cudaStreamBeginCapture(void *stream, int mode) {
    PHANTOM_USES_CUDA;
    (void)mode;
    if (phantom_is_capturing(stream))
        return cudaErrorIllegalState;
    phantom_capture_begin(stream);
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaStreamBeginCaptureToGraph(void *stream) { return cudaStreamBeginCapture(stream, 0); }

PHANTOM_API cudaError_t cudaStreamEndCapture(void *stream, void **graph) {
    PHANTOM_USES_CUDA;
    if (!phantom_is_capturing(stream))
        return cudaErrorIllegalState;
    phantom_capture_end(stream);
    *graph = malloc(1);
    return *graph ? cudaSuccess : cudaErrorMemoryAllocation;
}

PHANTOM_API cudaError_t cudaStreamIsCapturing(void *stream, int *status) {
    PHANTOM_USES_CUDA;
    *status = phantom_is_capturing(stream) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

static void capture_info(void *stream, int *status, unsigned long long *id, void **graph) {
    unsigned long long capture = phantom_capture_id(stream);
    *status = capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    if (id)
        *id = capture;
    if (graph)
        *graph = &running_graph;
}

/* The dependencies and their edges are empty. CUDA 13 took over the arguments of CUDA 12's _v3 for the plain name. */
PHANTOM_API cudaError_t cudaStreamGetCaptureInfo_v3(void *stream, int *status, unsigned long long *id, void **graph, void *nodes, void *edges,
                                                    size_t *count) {
    PHANTOM_USES_CUDA;
    (void)nodes, (void)edges;
    capture_info(stream, status, id, graph);
    if (count)
        *count = 0;
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaStreamGetCaptureInfo_v2(void *stream, int *status, unsigned long long *id, void **graph, void *nodes, size_t *count) {
    return cudaStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, NULL, count);
}

#if PHANTOM_CUDART_VERSION >= 13000
PHANTOM_API cudaError_t cudaStreamGetCaptureInfo(void *stream, int *status, unsigned long long *id, void **graph, void *nodes, void *edges,
                                                 size_t *count) {
    return cudaStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, edges, count);
}
#else
PHANTOM_API cudaError_t cudaStreamGetCaptureInfo(void *stream, int *status, unsigned long long *id) {
    capture_info(stream, status, id, NULL);
    return cudaSuccess;
}
#endif

PHANTOM_API cudaError_t cudaThreadExchangeStreamCaptureMode(int *mode) {
    static __thread int current = cudaStreamCaptureModeGlobal;
    int before = current;
    current = *mode;
    *mode = before;
    return cudaSuccess;
}

/* One node: torch warns about a graph without any. */
PHANTOM_API cudaError_t cudaGraphGetNodes(void *graph, void *nodes, size_t *count) {
    PHANTOM_USES_CUDA;
    (void)graph, (void)nodes;
    *count = 1;
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags) {
    PHANTOM_USES_CUDA;
    (void)graph, (void)flags;
    *exec = &instance;
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaGraphInstantiate(void **exec, void *graph, unsigned long long flags) {
    return cudaGraphInstantiateWithFlags(exec, graph, flags);
}

PHANTOM_API cudaError_t cudaGraphLaunch(void *exec, void *stream) {
    PHANTOM_USES_CUDA;
    (void)exec, (void)stream;
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaGraphExecDestroy(void *exec) {
    PHANTOM_USES_CUDA;
    (void)exec;
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaGraphDestroy(void *graph) {
    PHANTOM_USES_CUDA;
    if (graph != &running_graph)
        free(graph);
    return cudaSuccess;
}

/* Host functions run where they are submitted: all work before them is done. */
PHANTOM_API cudaError_t cudaStreamAddCallback(void *stream, void (*callback)(void *, cudaError_t, void *), void *data, unsigned flags) {
    PHANTOM_USES_CUDA;
    (void)flags;
    callback(stream, cudaSuccess, data);
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaLaunchHostFunc(void *stream, void (*function)(void *), void *data) {
    PHANTOM_USES_CUDA;
    if (!phantom_is_capturing(stream))
        function(data);
    return cudaSuccess;
}
