/* What cudnn.c and withheld.c share: the real library, and the engines of its convolutions. */
#ifndef PHANTOM_PLANS_H
#define PHANTOM_PLANS_H

#include "convolution.h"

/* From cuDNN's interface, as the others in cudnn.c. */
enum { ENGINECFG_DESCRIPTOR = 3, ATTR_ENGINEHEUR_RESULTS = 202, TYPE_DESCRIPTOR = 15 };

typedef void phantom_cudnn_listener(int severity, void *data, const void *call, const char *message);

/* Functions of cuDNN's, by their names there: cudnnBackendCreateDescriptor, and so on. */
struct phantom_cudnn {
    size_t (*version)(void);
    int (*create)(int type, void **descriptor);
    int (*destroy)(void *descriptor);
    int (*set)(void *descriptor, int name, int type, int64_t count, const void *elements);
    int (*get)(void *descriptor, int name, int type, int64_t wanted, int64_t *count, void *elements);
    int (*finalize)(void *descriptor);
    int (*get_callback)(unsigned *mask, void **data, phantom_cudnn_listener **listener);
    int (*set_callback)(unsigned mask, void *data, phantom_cudnn_listener *listener);
    bool usable;
};

/* ---- withheld.c */

enum { PHANTOM_MOST_ENGINES = 12 };

/* Numbers of engines, each once, in the order in which cuDNN came to them. */
struct phantom_engines {
    int count, ids[PHANTOM_MOST_ENGINES];
};

/* For each of so many results of finalized heuristics, the engines that cuDNN passed over before it. */
void phantom_withheld(const struct phantom_cudnn *cudnn, void *heuristics, int64_t results,
                      struct phantom_engines *before);

#endif
