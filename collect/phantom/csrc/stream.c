/* Streams, events and the state of graph capture.
 *
 * Work is done the moment it is submitted, so an event is complete at once. With PHANTOM_LAG=1 it completes only when
 * the host synchronises, which is how blocks freed on another stream stay pending on a busy device. */
#include "phantom.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define __CUDA_INTERNAL_SKIP_CPP_HEADERS__
#include <driver_types.h>

#define FIRST_HANDLE 0x5000
#define HANDLE_STEP 16

struct stream {
    int priority;
    unsigned flags;
    unsigned long long capture; /* the capture it takes part in, or 0 */
};

struct event {
    uint64_t recorded_at;       /* 0: never */
    unsigned flags;
    unsigned long long capture; /* of the stream it was recorded on */
};

static struct stream *streams; /* 0 stands for the default streams, which have no handle of ours */
static size_t stream_count = 1, stream_room;
static unsigned long long captures;
static int running;
static uint64_t clock_now = 1, synced;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool lagging(void) {
    static int lag = -1;
    if (lag < 0) {
        const char *text = getenv("PHANTOM_LAG");
        lag = text && atoi(text);
    }
    return lag;
}

/* Handles are small numbers and the same in every run: traces print them. Held lock. */
static struct stream *stream_of(const void *handle) {
    if (!streams) {
        stream_room = 64;
        streams = calloc(stream_room, sizeof *streams);
        if (!streams)
            abort();
    }
    uintptr_t h = (uintptr_t)handle;
    size_t i = h < FIRST_HANDLE ? 0 : (h - FIRST_HANDLE) / HANDLE_STEP;
    return &streams[i < stream_count ? i : 0];
}

static cudaError_t create(void **handle, unsigned flags, int priority) {
    PHANTOM_USES_CUDA;
    pthread_mutex_lock(&lock);
    stream_of(NULL);
    if (stream_count == stream_room) {
        struct stream *grown = realloc(streams, 2 * stream_room * sizeof *grown);
        if (!grown) {
            pthread_mutex_unlock(&lock);
            return cudaErrorMemoryAllocation;
        }
        streams = grown;
        stream_room *= 2;
    }
    streams[stream_count] = (struct stream){priority < -5 ? -5 : priority > 0 ? 0 : priority, flags, 0};
    *handle = (void *)(uintptr_t)(FIRST_HANDLE + HANDLE_STEP * stream_count++);
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaStreamCreate(void **stream) { return create(stream, 0, 0); }

PHANTOM_API cudaError_t cudaStreamCreateWithFlags(void **stream, unsigned flags) { return create(stream, flags, 0); }

PHANTOM_API cudaError_t cudaStreamCreateWithPriority(void **stream, unsigned flags, int priority) { return create(stream, flags, priority); }

PHANTOM_API cudaError_t cudaStreamDestroy(void *stream) {
    PHANTOM_USES_CUDA;
    (void)stream;
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaStreamGetPriority(void *stream, int *priority) {
    PHANTOM_USES_CUDA;
    pthread_mutex_lock(&lock);
    *priority = stream_of(stream)->priority;
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaStreamGetFlags(void *stream, unsigned *flags) {
    PHANTOM_USES_CUDA;
    pthread_mutex_lock(&lock);
    *flags = stream_of(stream)->flags;
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

static unsigned long long capture_of(const void *stream) {
    pthread_mutex_lock(&lock);
    unsigned long long capture = stream_of(stream)->capture;
    pthread_mutex_unlock(&lock);
    return capture;
}

int phantom_captures_running(void) { return __atomic_load_n(&running, __ATOMIC_RELAXED); }

int phantom_is_capturing(const void *stream) { return capture_of(stream) != 0; }

static void sync_to(uint64_t time) {
    pthread_mutex_lock(&lock);
    if (time > synced)
        synced = time;
    pthread_mutex_unlock(&lock);
}

static uint64_t now(void) { return __atomic_load_n(&clock_now, __ATOMIC_RELAXED); }

PHANTOM_API cudaError_t cudaDeviceSynchronize(void) {
    PHANTOM_USES_CUDA;
    sync_to(now());
    return phantom_device_count() ? cudaSuccess : cudaErrorNoDevice;
}

PHANTOM_API cudaError_t cudaStreamQuery(void *stream) {
    PHANTOM_USES_CUDA;
    return phantom_is_capturing(stream) ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

PHANTOM_API cudaError_t cudaStreamSynchronize(void *stream) {
    PHANTOM_USES_CUDA;
    if (phantom_is_capturing(stream))
        return cudaErrorStreamCaptureUnsupported;
    sync_to(now());
    return cudaSuccess;
}

/* ---- events */

PHANTOM_API cudaError_t cudaEventCreateWithFlags(void **event, unsigned flags) {
    PHANTOM_USES_CUDA;
    struct event *e = calloc(1, sizeof *e);
    if (!e)
        return cudaErrorMemoryAllocation;
    e->flags = flags;
    *event = e;
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaEventCreate(void **event) { return cudaEventCreateWithFlags(event, 0); }

PHANTOM_API cudaError_t cudaEventDestroy(void *event) {
    PHANTOM_USES_CUDA;
    free(event);
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaEventRecordWithFlags(void *event, void *stream, unsigned flags) {
    PHANTOM_USES_CUDA;
    (void)flags;
    struct event *e = event;
    pthread_mutex_lock(&lock);
    e->recorded_at = ++clock_now;
    e->capture = stream_of(stream)->capture;
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaEventRecord(void *event, void *stream) { return cudaEventRecordWithFlags(event, stream, 0); }

PHANTOM_API cudaError_t cudaEventQuery(void *event) {
    PHANTOM_USES_CUDA;
    struct event *e = event;
    pthread_mutex_lock(&lock);
    bool pending = lagging() && e->recorded_at > synced;
    pthread_mutex_unlock(&lock);
    return pending ? cudaErrorNotReady : cudaSuccess;
}

PHANTOM_API cudaError_t cudaEventSynchronize(void *event) {
    PHANTOM_USES_CUDA;
    sync_to(((struct event *)event)->recorded_at);
    return cudaSuccess;
}

/* A stream that waits for an event of a captured stream joins that capture. */
PHANTOM_API cudaError_t cudaStreamWaitEvent(void *stream, void *event, unsigned flags) {
    PHANTOM_USES_CUDA;
    (void)flags;
    struct event *e = event;
    pthread_mutex_lock(&lock);
    if (e->capture)
        stream_of(stream)->capture = e->capture;
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

/* Nothing takes time here, so all spans are the same: a made-up spread would let autotuners make up a winner. */
PHANTOM_API cudaError_t cudaEventElapsedTime(float *milliseconds, void *begin, void *end) {
    PHANTOM_USES_CUDA;
    struct event *from = begin, *to = end;
    *milliseconds = 1.0f;
    if (!from->recorded_at || !to->recorded_at || (from->flags | to->flags) & cudaEventDisableTiming)
        return cudaErrorInvalidResourceHandle;
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaEventElapsedTime_v2(float *milliseconds, void *begin, void *end) {
    return cudaEventElapsedTime(milliseconds, begin, end);
}

/* ---- capture: called by graph.c */

unsigned long long phantom_capture_begin(void *stream) {
    pthread_mutex_lock(&lock);
    unsigned long long capture = ++captures;
    stream_of(stream)->capture = capture;
    __atomic_add_fetch(&running, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
    return capture;
}

unsigned long long phantom_capture_id(const void *stream) { return capture_of(stream); }

void phantom_capture_end(const void *stream) {
    pthread_mutex_lock(&lock);
    unsigned long long capture = stream_of(stream)->capture;
    if (capture)
        __atomic_sub_fetch(&running, 1, __ATOMIC_RELAXED);
    for (size_t i = 0; i < stream_count; i++)
        if (streams[i].capture == capture)
            streams[i].capture = 0;
    pthread_mutex_unlock(&lock);
}
