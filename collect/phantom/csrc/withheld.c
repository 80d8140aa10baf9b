/* Finds the engines that cuDNN ranks before the ones that it offers. Without a device it ranks all engines as it
 * does on one. It then leaves out the engines that must be built on a device: Winograd's algorithm, Fourier
 * transforms, and products that it hands to cuBLASLt. It names them to a listener (cudnnSetCallback): asked for its
 * first k results, it reports the engines that it passed over until it had k. So the engines before a result need
 * not be guessed from the sizes of the convolution. An H200 under cuDNN 9.19 took engines 3, 17, 18 and 50 for 518
 * of 3,777 random convolutions, and cuDNN reported all of them (testdata/convolutions.csv.gz, docs/accuracy.md).
 * For three it took engine 7, which has no known rule.
 *
 * cuDNN passes over some of these engines on a device, too. The first engine that has a correction is assumed to run.
 * These questions take some milliseconds for each convolution that torch has not met before. */
#include "plans.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { INFO = 1 << 3 }; /* CUDNN_SEV_INFO_EN */

/* The engines that cuDNN names to this thread. NULL while the thread is not asking: the listener also gets messages of
 * other threads' calls. */
static _Thread_local struct phantom_engines *hearing;

static void add(struct phantom_engines *engines, int engine) {
    for (int i = 0; i < engines->count; i++)
        if (engines->ids[i] == engine)
            return;
    if (engines->count < PHANTOM_MOST_ENGINES)
        engines->ids[engines->count++] = engine;
}

/* A message consists of lines that each end with a zero byte. Another zero byte ends the message. */
static void hear(int severity, void *data, const void *call, const char *message) {
    (void)severity, (void)data, (void)call;
    static const char key[] = "engineConfig: type=json; val={\"engineId\":";
    for (const char *line = message; hearing && *line; line += strlen(line) + 1) {
        const char *at = strstr(line, key);
        if (at)
            add(hearing, atoi(at + sizeof key - 1));
    }
}

/* The engines that cuDNN passes over until it has `results` results. */
static struct phantom_engines passed_over(const struct phantom_cudnn *cudnn, void *heuristics, int64_t results) {
    struct phantom_engines heard = {0};
    void **made = calloc((size_t)results, sizeof *made);
    int64_t count = 0;
    while (made && count < results && !cudnn->create(ENGINECFG_DESCRIPTOR, &made[count]))
        count++;
    unsigned mask;
    void *data;
    phantom_cudnn_listener *listener;
    if (count == results && !cudnn->get_callback(&mask, &data, &listener)) {
        hearing = &heard;
        if (!cudnn->set_callback(INFO, NULL, hear)) {
            cudnn->get(heuristics, ATTR_ENGINEHEUR_RESULTS, TYPE_DESCRIPTOR, results, &(int64_t){0}, made);
            /* If nothing listened or logged before, `hear` stays set: without a listener cuDNN would from now on write
             * its errors to the script's stderr. */
            cudnn->set_callback(mask, data, listener || mask ? listener : hear);
        }
        hearing = NULL;
    }
    while (count > 0)
        cudnn->destroy(made[--count]);
    free(made);
    return heard;
}

/* A process has one listener. Callers wait for each other, and messages from other threads' calls in the meantime
 * are lost. */
static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;

void phantom_withheld(const struct phantom_cudnn *cudnn, void *heuristics, int64_t results,
                      struct phantom_engines *before) {
    memset(before, 0, (size_t)results * sizeof *before);
    if (!cudnn->get_callback || !cudnn->set_callback)
        return;
    pthread_mutex_lock(&asking);
    /* For most convolutions cuDNN passes over no engine. Once a result has all passed-over engines before it, later
     * results have no more. */
    struct phantom_engines all = passed_over(cudnn, heuristics, results);
    bool complete = !all.count;
    for (int64_t i = 0; i < results && !complete; i++) {
        before[i] = i + 1 < results ? passed_over(cudnn, heuristics, i + 1) : all;
        if (before[i].count < all.count)
            continue;
        for (complete = true; ++i < results;)
            before[i] = all;
    }
    pthread_mutex_unlock(&asking);
}
