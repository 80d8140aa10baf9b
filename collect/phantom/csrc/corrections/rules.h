/* The rules that corrections.c lists, each in a file of its own, and functions that several rules need. */
#ifndef PHANTOM_RULES_H
#define PHANTOM_RULES_H

#include "corrections.h"

typedef int64_t phantom_rule(const struct phantom_question *question);

phantom_rule phantom_clusters, phantom_products, phantom_winograd, phantom_fourier, phantom_fourier_tiles;
phantom_rule phantom_batch_norm;
phantom_rule phantom_context, phantom_local_memory, phantom_first_kernel, phantom_more_code, phantom_cublas_handle;

enum { FLOAT = sizeof(float), COMPLEX = 2 * sizeof(float) };

/* The numbers of planes of pixels in a batch's images, in its outputs, and in the weight. */
static inline int64_t image_planes(const struct convolution *c) { return phantom_product(c->image, 2); }
static inline int64_t output_planes(const struct convolution *c) { return phantom_product(c->output, 2); }
static inline int64_t weight_planes(const struct convolution *c) { return phantom_product(c->weight, 2); }

/* The frequencies to keep of a square of real numbers. The other half mirrors them. */
static inline int64_t frequencies(int64_t side) { return side * (side / 2 + 1); }

#endif
