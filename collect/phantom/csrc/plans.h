/* What cudnn.c and withheld.c share: the real library, and the engines of its convolutions. */
#ifndef PHANTOM_PLANS_H
#define PHANTOM_PLANS_H

#include "convolution.h"

/* Constants of cuDNN's interface. cudnn.c has more of them. */
enum { ENGINECFG_DESCRIPTOR = 3, ATTR_ENGINEHEUR_RESULTS = 202, TYPE_DESCRIPTOR = 15 };

typedef void phantom_cudnn_listener(int severity, void *data, const void *call, const char *message);

/* Functions of the real cuDNN: `create` is cudnnBackendCreateDescriptor, and so on. */
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

/* Numbers of engines, each once, in the order in which cuDNN named them. */
struct phantom_engines {
    int count, ids[PHANTOM_MOST_ENGINES];
};

/* Gives, for each of `results` results of finalized heuristics, the engines that cuDNN passed over before this
 * result. */
void phantom_withheld(const struct phantom_cudnn *cudnn, void *heuristics, int64_t results,
                      struct phantom_engines *before);

#endif
