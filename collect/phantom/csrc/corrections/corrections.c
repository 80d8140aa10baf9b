/* The list of corrections. PHANTOM_WITHOUT names corrections to leave out, separated by commas. It only serves to
 * measure what each correction gains. */
#include "rules.h"

#include <stdlib.h>
#include <string.h>

static const struct correction {
    const char *name;
    enum phantom_topic topic;
    phantom_rule *rule;
} corrections[] = {
    {"clusters", PHANTOM_PLAN, phantom_clusters},
    {"products", PHANTOM_ENGINE, phantom_products},
    {"winograd", PHANTOM_ENGINE, phantom_winograd},
    {"fourier", PHANTOM_ENGINE, phantom_fourier},
    {"fourier-tiles", PHANTOM_ENGINE, phantom_fourier_tiles},
    {"batch-norm", PHANTOM_NORM, phantom_batch_norm},
    {"context", PHANTOM_DRIVER, phantom_context},
    {"local-memory", PHANTOM_DRIVER, phantom_local_memory},
    {"first-kernel", PHANTOM_DRIVER, phantom_first_kernel},
    {"more-code", PHANTOM_DRIVER, phantom_more_code},
    {"cublas-handle", PHANTOM_DRIVER, phantom_cublas_handle},
};

static bool is_left_out(const struct correction *correction) {
    size_t length = strlen(correction->name);
    for (const char *at = getenv("PHANTOM_WITHOUT"); at && *at;) {
        size_t named = strcspn(at, ",");
        if (named == length && !memcmp(at, correction->name, length))
            return true;
        at += named + (at[named] == ',');
    }
    return false;
}

int64_t phantom_correct(const struct phantom_question *question) {
    for (size_t i = 0; i < sizeof corrections / sizeof *corrections; i++) {
        const struct correction *correction = &corrections[i];
        if (correction->topic != question->topic || is_left_out(correction))
            continue;
        int64_t bytes = correction->rule(question);
        if (bytes != PHANTOM_UNKNOWN)
            return bytes;
    }
    return PHANTOM_UNKNOWN;
}
