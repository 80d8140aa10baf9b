/* CUDA graphs. Capturing runs the script once as usual, with the allocator told about the capture. A replay does
 * nothing. torch sees the state of each stream (stream.c), and the nodes: it warns about a graph without any, and
 * its allocator may look at their order (graph_capture_record_stream_reuse). Each kernel and each copy is a node.
 * A library's launch is no node, since its stream is unknown; the graph only notes that libraries launched
 * something. */
#include "phantom.h"

#include <stdlib.h>
#include <string.h>

#define __CUDA_INTERNAL_SKIP_CPP_HEADERS__
#include <driver_types.h>

static char instance;

PHANTOM_API cudaError_t cudaStreamBeginCapture(void *stream, int mode) {
    PHANTOM_USES_CUDA;
    (void)mode;
    if (phantom_is_capturing(stream))
        return cudaErrorIllegalState;
    return phantom_capture_begin(stream) ? cudaSuccess : cudaErrorMemoryAllocation;
}

PHANTOM_API cudaError_t cudaStreamBeginCaptureToGraph(void *stream) { return cudaStreamBeginCapture(stream, 0); }

PHANTOM_API cudaError_t cudaStreamEndCapture(void *stream, void **graph) {
    PHANTOM_USES_CUDA;
    if (!phantom_is_capturing(stream))
        return cudaErrorIllegalState;
    *graph = phantom_capture_end(stream);
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaStreamIsCapturing(void *stream, int *status) {
    PHANTOM_USES_CUDA;
    *status = phantom_is_capturing(stream) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

/* The phantom GPU sets `edges` to NULL. In CUDA 13 the function without a suffix has the arguments of CUDA 12's _v3. */
PHANTOM_API cudaError_t cudaStreamGetCaptureInfo_v3(void *stream, int *status, unsigned long long *id, void **graph,
                                                    void **nodes, void **edges, size_t *count) {
    PHANTOM_USES_CUDA;
    void *its_graph, *its_nodes;
    size_t its_count;
    unsigned long long capture = phantom_capture_id(stream, &its_graph, &its_nodes, &its_count);
    *status = capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    if (id)
        *id = capture;
    if (graph)
        *graph = its_graph;
    if (nodes)
        *nodes = its_nodes;
    if (edges)
        *edges = NULL;
    if (count)
        *count = its_count;
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaStreamGetCaptureInfo_v2(void *stream, int *status, unsigned long long *id, void **graph,
                                                    void **nodes, size_t *count) {
    return cudaStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, NULL, count);
}

#if PHANTOM_CUDART_VERSION >= 13000
PHANTOM_API cudaError_t cudaStreamGetCaptureInfo(void *stream, int *status, unsigned long long *id, void **graph,
                                                 void **nodes, void **edges, size_t *count) {
    return cudaStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, edges, count);
}
#else
PHANTOM_API cudaError_t cudaStreamGetCaptureInfo(void *stream, int *status, unsigned long long *id) {
    return cudaStreamGetCaptureInfo_v3(stream, status, id, NULL, NULL, NULL, NULL);
}
#endif

/* Writes as many nodes as fit, or only their number if `to` is NULL. */
static cudaError_t give_nodes(struct phantom_node **to, size_t *count, struct phantom_node *const *nodes, size_t have) {
    if (!to) {
        *count = have;
        return cudaSuccess;
    }
    if (have && nodes)
        memcpy(to, nodes, (*count < have ? *count : have) * sizeof *to);
    if (*count > have)
        *count = have;
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaGraphNodeGetDependencies_v2(struct phantom_node *node, struct phantom_node **to,
                                                        void *edges, size_t *count) {
    PHANTOM_USES_CUDA;
    (void)edges;
    return give_nodes(to, count, node->after, node->count);
}

#if PHANTOM_CUDART_VERSION >= 13000
PHANTOM_API cudaError_t cudaGraphNodeGetDependencies(struct phantom_node *node, struct phantom_node **to, void *edges,
                                                     size_t *count) {
    return cudaGraphNodeGetDependencies_v2(node, to, edges, count);
}
#else
PHANTOM_API cudaError_t cudaGraphNodeGetDependencies(struct phantom_node *node, struct phantom_node **to,
                                                     size_t *count) {
    return cudaGraphNodeGetDependencies_v2(node, to, NULL, count);
}
#endif

PHANTOM_API cudaError_t cudaThreadExchangeStreamCaptureMode(int *mode) {
    static __thread int current = cudaStreamCaptureModeGlobal;
    int before = current;
    current = *mode;
    *mode = before;
    return cudaSuccess;
}

/* A graph in which only libraries worked reports one node, since torch asks whether there is any. */
PHANTOM_API cudaError_t cudaGraphGetNodes(struct phantom_graph *graph, struct phantom_node **to, size_t *count) {
    PHANTOM_USES_CUDA;
    if (!to && !graph->count && graph->libraries) {
        *count = 1;
        return cudaSuccess;
    }
    return give_nodes(to, count, graph->nodes, graph->count);
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

PHANTOM_API cudaError_t cudaGraphDestroy(struct phantom_graph *graph) {
    PHANTOM_USES_CUDA;
    for (size_t i = 0; graph && i < graph->count; i++)
        free(graph->nodes[i]);
    if (graph)
        free(graph->nodes);
    free(graph);
    return cudaSuccess;
}

/* A host function runs as soon as it is submitted, since all work submitted before it is done. */
PHANTOM_API cudaError_t cudaStreamAddCallback(void *stream, void (*callback)(void *, cudaError_t, void *), void *data,
                                              unsigned flags) {
    PHANTOM_USES_CUDA;
    (void)flags;
    callback(stream, cudaSuccess, data);
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaLaunchHostFunc(void *stream, void (*function)(void *), void *data) {
    PHANTOM_USES_CUDA;
    phantom_works(stream);
    if (!phantom_is_capturing(stream))
        function(data);
    return cudaSuccess;
}
