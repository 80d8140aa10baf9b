/* The rules of corrections.c, a file each, and what several of them need. */
#ifndef PHANTOM_RULES_H
#define PHANTOM_RULES_H

#include "corrections.h"

typedef int64_t phantom_rule(const struct phantom_question *question);

phantom_rule phantom_clusters, phantom_products, phantom_winograd, phantom_fourier, phantom_fourier_tiles;
phantom_rule phantom_batch_norm;
phantom_rule phantom_context, phantom_local_memory, phantom_first_kernel, phantom_more_code, phantom_cublas_handle;

enum { FLOAT = sizeof(float), COMPLEX = 2 * sizeof(float) };

/* Planes of pixels: of the images of a batch, of its outputs, and of the weight. */
static inline int64_t image_planes(const struct convolution *c) { return phantom_product(c->image, 2); }
static inline int64_t output_planes(const struct convolution *c) { return phantom_product(c->output, 2); }
static inline int64_t weight_planes(const struct convolution *c) { return phantom_product(c->weight, 2); }

/* Frequencies of a square of real numbers: half of them contain everything. */
static inline int64_t frequencies(int64_t side) { return side * (side / 2 + 1); }

#endif
