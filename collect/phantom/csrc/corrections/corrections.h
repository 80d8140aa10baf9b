/* Corrections: what libraries answer on a real device, for questions that they answer wrongly or not at all without
 * one.
 *
 * A correction is a rule for one kind of question, made from recordings of a real device. It returns bytes, or
 * PHANTOM_UNKNOWN. Then the next rule for such questions is asked, and after the last one the library's own answer
 * stays. corrections.c lists the rules. CORRECTIONS.md says what each gains, and its source. A rule that applies to
 * one device only checks the profile. */
#ifndef PHANTOM_CORRECTIONS_H
#define PHANTOM_CORRECTIONS_H

#include "../convolution.h"

enum { PHANTOM_UNKNOWN = -1 };

enum phantom_topic {
    PHANTOM_PLAN,   /* the workspace of a plan that cuDNN made */
    PHANTOM_ENGINE, /* the workspace of a convolution by an engine that cuDNN withholds without a device */
    PHANTOM_NORM,   /* the workspace of a batch normalisation */
    PHANTOM_DRIVER, /* addresses that the driver takes for itself; the rule takes them from the arena */
};

struct arena;

/* A question to the rules. Only the members of its topic are set. */
struct phantom_question {
    enum phantom_topic topic;

    /* PHANTOM_PLAN: cuDNN's JSON of the plan, and the workspace that it reports. ask returns the workspace of
     * another plan, or PHANTOM_UNKNOWN if cuDNN refuses it. */
    const char *plan;
    int64_t told;
    int64_t (*ask)(const char *json);

    /* PHANTOM_ENGINE */
    const struct convolution *convolution;
    int engine;

    /* PHANTOM_NORM: the cudnnBatchNormMode_t, and the size of the input. */
    int mode;
    bool backward;
    int64_t elements, channels;

    /* PHANTOM_DRIVER: the device's addresses, and the use that makes the driver take some of them. */
    struct arena *arena;
    enum phantom_use use;
};

/* The answer of the first rule that has one, or PHANTOM_UNKNOWN. */
int64_t phantom_correct(const struct phantom_question *question);

#endif
