/* Streams, events and the state of graph capture.
 *
 * Work is done when it is submitted, so an event is complete at once. With PHANTOM_LAG=1 it completes only when the
 * host synchronises. So blocks freed on another stream stay pending, as on a busy device.
 *
 * Only the kernel of torch.cuda._sleep takes time, since that is its purpose. It takes simulated time, so that runs are
 * alike however busy the machine is. Simulated time advances when the host waits, to the end of the wait, and by
 * STEP_NANOSECONDS whenever the host asks about work that is not done. */
#include "phantom.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define __CUDA_INTERNAL_SKIP_CPP_HEADERS__
#include <driver_types.h>

#define FIRST_HANDLE 0x5000
#define HANDLE_STEP 16

/* How far simulated time advances when the host asks about work that is not done. */
#define STEP_NANOSECONDS 1000000

/* The last nodes of a graph on a stream, now or when an event was recorded. */
struct last {
    struct phantom_node **nodes;
    size_t count;
};

struct stream {
    int priority;
    unsigned flags;
    unsigned long long capture; /* the capture that the stream takes part in, or 0 */
    struct last last;           /* the stream's last nodes in that capture */
    uint64_t done_at;           /* the simulated time at which the stream's work ends */
};

struct event {
    uint64_t recorded_at;       /* 0 if the event was never recorded */
    unsigned flags;
    unsigned long long capture; /* the capture of the stream on which the event was recorded */
    struct last last;
    uint64_t done_at;
};

struct capture {
    struct capture *next;
    unsigned long long id;
    struct phantom_graph *graph;
};

static struct stream *streams; /* streams[0] stands for the default streams, which have no handle of this library */
static size_t stream_count = 1, stream_room;
static unsigned long long captures;
static struct capture *underway;
static int running;
static uint64_t clock_now = 1, synced;
static uint64_t device_time, library_work;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool lagging(void) {
    static int lag = -1;
    if (lag < 0) {
        const char *text = getenv("PHANTOM_LAG");
        lag = text && atoi(text);
    }
    return lag;
}

/* A stream's handle is a small number that is the same in every run, since traces print it. The caller holds the
 * lock. */
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
    streams[stream_count] = (struct stream){.priority = priority < -5  ? -5
                                                        : priority > 0 ? 0
                                                                       : priority,
                                            .flags = flags};
    *handle = (void *)(uintptr_t)(FIRST_HANDLE + HANDLE_STEP * stream_count++);
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

PHANTOM_API cudaError_t cudaStreamCreate(void **stream) { return create(stream, 0, 0); }

PHANTOM_API cudaError_t cudaStreamCreateWithFlags(void **stream, unsigned flags) { return create(stream, flags, 0); }

PHANTOM_API cudaError_t cudaStreamCreateWithPriority(void **stream, unsigned flags, int priority) {
    return create(stream, flags, priority);
}

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

/* Advances simulated time to `time` if it is earlier, as the host waits for the device. */
static void wait_until(uint64_t time) {
    pthread_mutex_lock(&lock);
    if (time > device_time)
        device_time = time;
    pthread_mutex_unlock(&lock);
}

/* Whether simulated time is before `time`. If so it advances by a step, since the host has asked. The caller holds the
 * lock. */
static bool before(uint64_t time) {
    if (device_time >= time)
        return false;
    device_time += STEP_NANOSECONDS;
    return true;
}

static uint64_t done_at(const void *stream) {
    pthread_mutex_lock(&lock);
    uint64_t time = stream_of(stream)->done_at;
    pthread_mutex_unlock(&lock);
    return time;
}

static uint64_t all_done_at(void) {
    uint64_t time = 0;
    pthread_mutex_lock(&lock);
    stream_of(NULL);
    for (size_t i = 0; i < stream_count; i++)
        if (streams[i].done_at > time)
            time = streams[i].done_at;
    pthread_mutex_unlock(&lock);
    return time;
}

void phantom_sleeps(const void *stream, uint64_t nanoseconds) {
    pthread_mutex_lock(&lock);
    struct stream *s = stream_of(stream);
    if (!s->capture)
        s->done_at = (s->done_at > device_time ? s->done_at : device_time) + nanoseconds;
    pthread_mutex_unlock(&lock);
}

PHANTOM_API cudaError_t cudaDeviceSynchronize(void) {
    PHANTOM_USES_CUDA;
    sync_to(now());
    wait_until(all_done_at());
    return phantom_device_count() ? cudaSuccess : cudaErrorNoDevice;
}

PHANTOM_API cudaError_t cudaStreamQuery(void *stream) {
    PHANTOM_USES_CUDA;
    pthread_mutex_lock(&lock);
    struct stream *s = stream_of(stream);
    cudaError_t status = s->capture           ? cudaErrorStreamCaptureUnsupported
                         : before(s->done_at) ? cudaErrorNotReady
                                              : cudaSuccess;
    pthread_mutex_unlock(&lock);
    return status;
}

PHANTOM_API cudaError_t cudaStreamSynchronize(void *stream) {
    PHANTOM_USES_CUDA;
    if (phantom_is_capturing(stream))
        return cudaErrorStreamCaptureUnsupported;
    sync_to(now());
    wait_until(done_at(stream));
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
    if (event)
        free(((struct event *)event)->last.nodes);
    free(event);
    return cudaSuccess;
}

/* Appends those of the nodes that `last` does not contain. The caller holds the lock. */
static bool append(struct last *last, struct phantom_node *const *nodes, size_t count) {
    if (!count)
        return true;
    struct phantom_node **grown = realloc(last->nodes, (last->count + count) * sizeof *grown);
    if (!grown)
        return false;
    last->nodes = grown;
    for (size_t i = 0; i < count; i++) {
        size_t j = 0;
        while (j < last->count && grown[j] != nodes[i])
            j++;
        if (j == last->count)
            grown[last->count++] = nodes[i];
    }
    return true;
}

PHANTOM_API cudaError_t cudaEventRecordWithFlags(void *event, void *stream, unsigned flags) {
    PHANTOM_USES_CUDA;
    (void)flags;
    struct event *e = event;
    pthread_mutex_lock(&lock);
    e->recorded_at = ++clock_now;
    struct stream *s = stream_of(stream);
    e->capture = s->capture;
    e->done_at = s->done_at;
    e->last.count = 0;
    bool done = append(&e->last, s->last.nodes, s->capture ? s->last.count : 0);
    pthread_mutex_unlock(&lock);
    return done ? cudaSuccess : cudaErrorMemoryAllocation;
}

PHANTOM_API cudaError_t cudaEventRecord(void *event, void *stream) {
    return cudaEventRecordWithFlags(event, stream, 0);
}

PHANTOM_API cudaError_t cudaEventQuery(void *event) {
    PHANTOM_USES_CUDA;
    struct event *e = event;
    pthread_mutex_lock(&lock);
    bool pending = lagging() && e->recorded_at > synced || before(e->done_at);
    pthread_mutex_unlock(&lock);
    return pending ? cudaErrorNotReady : cudaSuccess;
}

PHANTOM_API cudaError_t cudaEventSynchronize(void *event) {
    PHANTOM_USES_CUDA;
    sync_to(((struct event *)event)->recorded_at);
    wait_until(((struct event *)event)->done_at);
    return cudaSuccess;
}

/* The running capture with this id, or NULL. The caller holds the lock. */
static struct capture *capture_with(unsigned long long id) {
    struct capture *c = id ? underway : NULL;
    while (c && c->id != id)
        c = c->next;
    return c;
}

/* A stream that waits for an event of a captured stream joins that capture. */
PHANTOM_API cudaError_t cudaStreamWaitEvent(void *stream, void *event, unsigned flags) {
    PHANTOM_USES_CUDA;
    (void)flags;
    struct event *e = event;
    pthread_mutex_lock(&lock);
    struct stream *s = stream_of(stream);
    bool done = true;
    if (capture_with(e->capture)) {
        if (s->capture != e->capture)
            s->last.count = 0;
        s->capture = e->capture;
        done = append(&s->last, e->last.nodes, e->last.count);
    } else if (!s->capture && e->done_at > s->done_at) {
        s->done_at = e->done_at;
    }
    pthread_mutex_unlock(&lock);
    return done ? cudaSuccess : cudaErrorMemoryAllocation;
}

/* The elapsed time between two events. Kernels take no time here, so times do not differ by kernel: differences that
 * were made up would let an autotuner choose a winner by chance. */
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
    struct capture *c = calloc(1, sizeof *c);
    if (!c || !(c->graph = calloc(1, sizeof *c->graph))) {
        free(c);
        return 0;
    }
    pthread_mutex_lock(&lock);
    unsigned long long capture = c->id = ++captures;
    c->graph->work_before = __atomic_load_n(&library_work, __ATOMIC_RELAXED);
    c->next = underway;
    underway = c;
    struct stream *s = stream_of(stream);
    s->capture = capture;
    s->last.count = 0;
    __atomic_add_fetch(&running, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
    return capture;
}

unsigned long long phantom_capture_id(const void *stream, void **graph, void **nodes, size_t *count) {
    pthread_mutex_lock(&lock);
    struct stream *s = stream_of(stream);
    unsigned long long capture = s->capture;
    struct capture *c = capture_with(capture);
    *graph = c ? c->graph : NULL;
    *nodes = c ? s->last.nodes : NULL;
    *count = c ? s->last.count : 0;
    pthread_mutex_unlock(&lock);
    return capture;
}

void *phantom_capture_end(const void *stream) {
    struct phantom_graph *graph = NULL;
    pthread_mutex_lock(&lock);
    unsigned long long capture = stream_of(stream)->capture;
    for (struct capture **at = &underway, *c; (c = *at); at = &c->next) {
        if (c->id != capture)
            continue;
        graph = c->graph;
        graph->libraries = __atomic_load_n(&library_work, __ATOMIC_RELAXED) != graph->work_before;
        *at = c->next;
        free(c);
        __atomic_sub_fetch(&running, 1, __ATOMIC_RELAXED);
        break;
    }
    for (size_t i = 0; i < stream_count; i++)
        if (streams[i].capture == capture)
            streams[i].capture = 0;
    pthread_mutex_unlock(&lock);
    return graph;
}

void phantom_works(const void *stream) {
    if (!phantom_captures_running())
        return;
    pthread_mutex_lock(&lock);
    struct stream *s = stream_of(stream);
    struct capture *c = capture_with(s->capture);
    struct phantom_node *node = c ? phantom_graph_add(c->graph, s->last.nodes, s->last.count) : NULL;
    if (node) {
        s->last.count = 0;
        append(&s->last, &node, 1);
    }
    pthread_mutex_unlock(&lock);
}

void phantom_works_somewhere(void) { __atomic_add_fetch(&library_work, 1, __ATOMIC_RELAXED); }
