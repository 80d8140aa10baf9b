/* What the corrections read from the JSON of cuDNN's plan of a convolution. The JSON has no blanks. */
#ifndef PHANTOM_CONVOLUTION_H
#define PHANTOM_CONVOLUTION_H

#include "phantom.h"

enum { DIMENSIONS = 5 };

struct convolution {
    const char *text;
    char operation; /* f(orward), d(ata) or w(eight) */
    char tensor_type[40], math[40];
    const char *device, *engine; /* where they begin in the text */
    int64_t image[DIMENSIONS], weight[DIMENSIONS], output[DIMENSIONS];
    int dimensions;
    bool channels_last; /* judged by the image's strides */
    bool plain;         /* neither padded nor strided */
    bool dense;         /* neither strided nor dilated */
};

/* Reads a convolution from a plan's JSON. Returns false if the plan is for another operation, for several groups, or
 * for tensors of several types. */
bool phantom_convolution_read(struct convolution *c, const char *text);

/* The first function returns whether a convolution is of images (not of volumes) and sums in fp32. The second also
 * requires contiguous tensors in fp32: Winograd's algorithm and Fourier transforms were observed only for such
 * tensors. */
bool phantom_sums_in_fp32(const struct convolution *c);
bool phantom_is_contiguous_fp32(const struct convolution *c);

/* Reads the number that follows the first `key` in the text. */
bool phantom_json_number(const char *text, const char *key, int64_t *value);

static inline int64_t over(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t phantom_product(const int64_t *values, int count);

#endif
