/* cuDNN's graph interface. The real library runs "deviceless" with the profile's properties (cuDNN 9.8 and later).
 * So cuDNN's own heuristics choose engines and report their workspaces. Only the execution of a plan does nothing.
 * Descriptors that would take a handle take a device property instead, as cuDNN documents for compiling without a
 * device.
 *
 * Known differences to a device (docs/accuracy.md): Hopper's cluster kernels are planned for 18 multiprocessors,
 * whatever the property says (a larger target is refused with target_sm_count > hw.multiProcessorCount). Engines
 * that need a device to be built are left out; cuDNN itself names them (withheld.c). So the rules of corrections.h
 * replace some of the workspaces. A cuDNN handle would not help: the CUDA runtime in cuDNN's libraries needs NVIDIA's
 * own driver. */
#include "corrections/corrections.h"
#include "plans.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From cuDNN's interface: cudnnStatus_t, cudnnBackendDescriptorType_t, cudnnBackendAttributeName_t,
 * cudnnBackendAttributeType_t */
enum { SUCCESS = 0, NOT_INITIALIZED = 1001 };
enum { ENGINE_DESCRIPTOR = 2, ENGINEHEUR_DESCRIPTOR = 4, EXECUTION_PLAN_DESCRIPTOR = 5, DEVICEPROP_DESCRIPTOR = 38 };
enum {
    ATTR_ENGINEHEUR_DEVICEPROP = 204,
    ATTR_EXECUTION_PLAN_HANDLE = 400,
    ATTR_EXECUTION_PLAN_ENGINE_CONFIG = 401,
    ATTR_EXECUTION_PLAN_WORKSPACE_SIZE = 402,
    ATTR_EXECUTION_PLAN_JSON = 405,
    ATTR_EXECUTION_PLAN_DEVICEPROP = 407,
    ATTR_ENGINE_DEVICEPROP = 1307,
    ATTR_DEVICEPROP_JSON = 2702,
};
enum { TYPE_HANDLE = 0, TYPE_INT64 = 3, TYPE_CHAR = 24 };

static struct phantom_cudnn real;
static void *device_property;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *make_device_property(void) {
    const struct phantom_profile *p = phantom_profile();
    char json[2048];
    int length = snprintf(
        json, sizeof json,
        "{\"cudaDeviceId\":0,\"deviceVer\":%lld,\"driverVer\":%lld,\"maxGridSize\":[%lld,%lld,%lld],"
        "\"maxBlockSize\":[%lld,%lld,%lld],\"regsPerBlock\":%lld,\"multiProcessorCount\":%lld,\"warpSize\":%lld,"
        "\"maxSharedMemoryPerBlock\":%lld,\"maxSharedMemoryPerBlockOptin\":%lld,\"reservedSharedMemoryPerBlock\":%lld,"
        "\"maxRegistersPerSM\":%lld,\"maxCtasPerSM\":%lld,\"maxThreadsPerBlock\":%lld,\"maxThreadsPerSM\":%lld,"
        "\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,\"smClockRateKHz\":%lld,\"memClockRateKHz\":%lld,"
        "\"l2CacheSize\":%lld,\"totalGlobalMem\":%lld,\"deviceName\":\"%s\"}",
        (long long)(100 * p->compute_major + 10 * p->compute_minor), (long long)p->driver_version,
        (long long)p->max_grid_dim_x, (long long)p->max_grid_dim_y, (long long)p->max_grid_dim_z,
        (long long)p->max_block_dim_x, (long long)p->max_block_dim_y, (long long)p->max_block_dim_z,
        (long long)p->registers_per_block, (long long)p->multiprocessors, (long long)p->warp_size,
        (long long)p->shared_memory_per_block_bytes, (long long)p->shared_memory_per_block_optin_bytes,
        (long long)p->reserved_shared_memory_per_block_bytes, (long long)p->registers_per_multiprocessor,
        (long long)p->max_blocks_per_multiprocessor, (long long)p->max_threads_per_block,
        (long long)p->max_threads_per_multiprocessor, (long long)p->core_clock_khz, (long long)p->memory_clock_khz,
        (long long)p->l2_cache_bytes, (long long)phantom_total_bytes(), p->name);
    void *property = NULL;
    if (length >= (int)sizeof json || real.create(DEVICEPROP_DESCRIPTOR, &property) ||
        real.set(property, ATTR_DEVICEPROP_JSON, TYPE_CHAR, length, json) || real.finalize(property))
        return NULL;
    return property;
}

static void load_real(void) {
    void *library = dlopen("libcudnn.so.9", RTLD_NOW);
    if (!library) {
        phantom_refuse("cuDNN (libcudnn.so.9 was not found; dpsight needs cuDNN 9.8 or later)", 0);
        return;
    }
    real.version = (size_t(*)(void))dlsym(library, "cudnnGetVersion");
    real.create = (int (*)(int, void **))dlsym(library, "cudnnBackendCreateDescriptor");
    real.destroy = (int (*)(void *))dlsym(library, "cudnnBackendDestroyDescriptor");
    real.set = (int (*)(void *, int, int, int64_t, const void *))dlsym(library, "cudnnBackendSetAttribute");
    real.get = (int (*)(void *, int, int, int64_t, int64_t *, void *))dlsym(library, "cudnnBackendGetAttribute");
    real.finalize = (int (*)(void *))dlsym(library, "cudnnBackendFinalize");
    real.get_callback = (int (*)(unsigned *, void **, phantom_cudnn_listener **))dlsym(library, "cudnnGetCallback");
    real.set_callback = (int (*)(unsigned, void *, phantom_cudnn_listener *))dlsym(library, "cudnnSetCallback");
    real.usable = real.version && real.create && real.destroy && real.set && real.get && real.finalize;
}

static bool loaded(void) {
    pthread_once(&once, load_real);
    return real.usable;
}

static pthread_once_t property_once = PTHREAD_ONCE_INIT;

static void load_property(void) {
    device_property = make_device_property();
    if (!device_property)
        phantom_refuse("cuDNN before 9.8 (it has no device properties)", 0);
}

static void *property(void) {
    pthread_once(&property_once, load_property);
    return device_property;
}

/* ---- what this library remembers of a descriptor until the descriptor is destroyed */

struct known {
    struct known *next;
    const void *descriptor;
    int type;
    struct phantom_engines
        before; /* what cuDNN passed over before this configuration of an engine, or before this plan's */
};

#define BUCKETS 1024
static struct known *all_known[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The link to the descriptor's entry, or the link where a new entry goes. Callers hold the lock. */
static struct known **place(const void *descriptor) {
    struct known **k = &all_known[((uintptr_t)descriptor >> 4) % BUCKETS];
    while (*k && (*k)->descriptor != descriptor)
        k = &(*k)->next;
    return k;
}

static void remember(const void *descriptor, int type) {
    struct known *known = calloc(1, sizeof *known);
    if (!known)
        return;
    known->descriptor = descriptor;
    known->type = type;
    pthread_mutex_lock(&lock);
    struct known **at = place(descriptor), *old = *at;
    known->next = old ? old->next : NULL;
    *at = known;
    pthread_mutex_unlock(&lock);
    free(old);
}

static void forget(const void *descriptor) {
    pthread_mutex_lock(&lock);
    struct known **at = place(descriptor), *known = *at;
    if (known)
        *at = known->next;
    pthread_mutex_unlock(&lock);
    free(known);
}

static int type_of(const void *descriptor) {
    pthread_mutex_lock(&lock);
    const struct known *known = *place(descriptor);
    int type = known ? known->type : -1;
    pthread_mutex_unlock(&lock);
    return type;
}

static struct phantom_engines engines_before(const void *descriptor) {
    pthread_mutex_lock(&lock);
    const struct known *known = *place(descriptor);
    struct phantom_engines before = known ? known->before : (struct phantom_engines){0};
    pthread_mutex_unlock(&lock);
    return before;
}

static void set_engines_before(const void *descriptor, struct phantom_engines before) {
    pthread_mutex_lock(&lock);
    struct known *known = *place(descriptor);
    if (known)
        known->before = before;
    pthread_mutex_unlock(&lock);
}

PHANTOM_API int cudnnBackendCreateDescriptor(int type, void **descriptor) {
    if (!loaded())
        return NOT_INITIALIZED;
    int status = real.create(type, descriptor);
    if (!status && type >= ENGINE_DESCRIPTOR && type <= EXECUTION_PLAN_DESCRIPTOR)
        remember(*descriptor, type);
    return status;
}

PHANTOM_API int cudnnBackendDestroyDescriptor(void *descriptor) {
    if (!loaded())
        return NOT_INITIALIZED;
    forget(descriptor);
    return real.destroy(descriptor);
}

PHANTOM_API int cudnnBackendSetAttribute(void *descriptor, int name, int type, int64_t count, const void *elements) {
    if (!loaded())
        return NOT_INITIALIZED;
    if (name == ATTR_EXECUTION_PLAN_ENGINE_CONFIG && type == TYPE_DESCRIPTOR && count == 1)
        set_engines_before(descriptor, engines_before(*(void *const *)elements));
    if (type != TYPE_HANDLE)
        return real.set(descriptor, name, type, count, elements);
    if (name != ATTR_EXECUTION_PLAN_HANDLE)
        return SUCCESS;
    void *device = property();
    return device ? real.set(descriptor, ATTR_EXECUTION_PLAN_DEVICEPROP, TYPE_DESCRIPTOR, 1, &device) : NOT_INITIALIZED;
}

/* ---- workspaces as the device has them: corrections.h */

static int64_t workspace_of(const char *json) {
    void *plan = NULL, *device = property();
    int64_t workspace = -1, count = 0;
    if (!device || real.create(EXECUTION_PLAN_DESCRIPTOR, &plan))
        return -1;
    if (real.set(plan, ATTR_EXECUTION_PLAN_DEVICEPROP, TYPE_DESCRIPTOR, 1, &device) ||
        real.set(plan, ATTR_EXECUTION_PLAN_JSON, TYPE_CHAR, (int64_t)strlen(json), json) || real.finalize(plan) ||
        real.get(plan, ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, TYPE_INT64, 1, &count, &workspace))
        workspace = -1;
    real.destroy(plan);
    return workspace;
}

/* The workspace on a device, in bytes, of a plan for which cuDNN reports told. Of the engines that cuDNN passed
 * over, the first with a known rule is assumed to run. */
static int64_t corrected(const char *text, int64_t told, const struct phantom_engines *before) {
    struct convolution convolution;
    bool is_convolution = before->count && phantom_convolution_read(&convolution, text);
    int64_t bytes = PHANTOM_UNKNOWN;
    for (int i = 0; is_convolution && i < before->count && bytes == PHANTOM_UNKNOWN; i++) {
        struct phantom_question question = {
            .topic = PHANTOM_ENGINE, .convolution = &convolution, .engine = before->ids[i]};
        bytes = phantom_correct(&question);
    }
    if (bytes == PHANTOM_UNKNOWN) {
        struct phantom_question question = {.topic = PHANTOM_PLAN, .plan = text, .told = told, .ask = workspace_of};
        bytes = phantom_correct(&question);
    }
    return bytes == PHANTOM_UNKNOWN ? told : bytes;
}

static void correct_workspace(void *plan, int64_t *workspace) {
    static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;
    /* If cuDNN compiled a kernel for a plan, the plan's text contains the kernel's binary: up to 40,519 bytes for
     * the convolutions in testdata (cuDNN 9.19), under 2 kB without one. If the text does not fit here, cuDNN
     * refuses, and its own workspace is used. */
    static char text[1 << 16], last[1 << 16];
    static struct phantom_engines last_before;
    static int64_t last_answer;
    struct phantom_engines before = engines_before(plan);
    if (!phantom_profile()->clusters[1] && !before.count) /* nothing to correct, on most devices */
        return;
    int64_t length = 0;
    pthread_mutex_lock(&asking);
    memset(text, 0, sizeof text);
    if (!real.get(plan, ATTR_EXECUTION_PLAN_JSON, TYPE_CHAR, sizeof text - 1, &length, text)) {
        if (strcmp(text, last) || memcmp(&before, &last_before, sizeof before)) {
            last_answer = corrected(text, *workspace, &before);
            strcpy(last, text);
            last_before = before;
        }
        *workspace = last_answer;
    }
    pthread_mutex_unlock(&asking);
}

static void note_withheld(void *heuristics, int64_t count, void *const *results) {
    struct phantom_engines *before =
        phantom_profile()->withheld && count > 0 ? malloc((size_t)count * sizeof *before) : NULL;
    if (!before)
        return;
    phantom_withheld(&real, heuristics, count, before);
    for (int64_t i = 0; i < count; i++)
        set_engines_before(results[i], before[i]);
    free(before);
}

PHANTOM_API int cudnnBackendGetAttribute(void *descriptor, int name, int type, int64_t wanted, int64_t *count,
                                         void *elements) {
    if (!loaded())
        return NOT_INITIALIZED;
    int status = real.get(descriptor, name, type, wanted, count, elements);
    if (status || wanted <= 0 || !elements)
        return status;
    if (name == ATTR_EXECUTION_PLAN_WORKSPACE_SIZE && type == TYPE_INT64)
        correct_workspace(descriptor, elements);
    if (name == ATTR_ENGINEHEUR_RESULTS && type == TYPE_DESCRIPTOR && count)
        note_withheld(descriptor, *count < wanted ? *count : wanted, elements);
    return status;
}

PHANTOM_API int cudnnBackendFinalize(void *descriptor) {
    if (!loaded())
        return NOT_INITIALIZED;
    int type = type_of(descriptor);
    if (type == ENGINE_DESCRIPTOR || type == ENGINEHEUR_DESCRIPTOR) {
        void *device = property();
        if (!device)
            return NOT_INITIALIZED;
        if (type == ENGINEHEUR_DESCRIPTOR)
            phantom_note("cuDNN chose its engines without a device: a real GPU may use another workspace for a "
                         "convolution or for attention");
        real.set(descriptor, type == ENGINEHEUR_DESCRIPTOR ? ATTR_ENGINEHEUR_DEVICEPROP : ATTR_ENGINE_DEVICEPROP,
                 TYPE_DESCRIPTOR, 1, &device);
    }
    return real.finalize(descriptor);
}

PHANTOM_API int cudnnBackendExecute(void) {
    phantom_works_somewhere();
    return SUCCESS;
}

/* ---- handles and versions */

struct handle {
    void *stream;
};

PHANTOM_API int cudnnCreate(void **handle) {
    if (!loaded())
        return NOT_INITIALIZED;
    *handle = calloc(1, sizeof(struct handle));
    return *handle ? SUCCESS : NOT_INITIALIZED;
}

PHANTOM_API int cudnnDestroy(void *handle) {
    free(handle);
    return SUCCESS;
}

PHANTOM_API int cudnnSetStream(void *handle, void *stream) {
    ((struct handle *)handle)->stream = stream;
    return SUCCESS;
}

PHANTOM_API int cudnnGetStream(void *handle, void **stream) {
    *stream = ((struct handle *)handle)->stream;
    return SUCCESS;
}

PHANTOM_API size_t cudnnGetVersion(void) { return loaded() ? real.version() : 0; }

PHANTOM_API size_t cudnnGetCudartVersion(void) { return PHANTOM_CUDART_VERSION; }

PHANTOM_API int cudnnGetProperty(int which, int *value) {
    int version = (int)cudnnGetVersion();
    *value = which == 0 ? version / 10000 : which == 1 ? version / 100 % 100 : version % 100;
    return SUCCESS;
}

PHANTOM_API const char *cudnnGetErrorString(int status) {
    return status ? "not answered by the phantom GPU's cuDNN" : "CUDNN_STATUS_SUCCESS";
}

PHANTOM_API void cudnnGetLastErrorString(char *text, size_t size) {
    if (size)
        *text = 0;
}
