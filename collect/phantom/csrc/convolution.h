/* What corrections read of cuDNN's plan of a convolution: its JSON, which has no blanks. */
#ifndef PHANTOM_CONVOLUTION_H
#define PHANTOM_CONVOLUTION_H

#include "phantom.h"

enum { DIMENSIONS = 5 };

struct convolution {
    const char *text;
    char operation; /* f(orward), d(ata) or w(eight) */
    char tensor_type[40], math[40];
    const char *device, *engine; /* the rest of the text from there on */
    int64_t image[DIMENSIONS], weight[DIMENSIONS], output[DIMENSIONS];
    int dimensions;
    bool channels_last; /* as the image lies */
    bool plain;         /* neither padded nor strided */
    bool dense;         /* neither strided nor dilated */
};

/* Returns false if the plan is for anything else, for several groups, or for tensors of several types. */
bool phantom_convolution_read(struct convolution *c, const char *text);

/* Whether a convolution is of images (not of volumes) and sums in fp32. The second function also requires
 * contiguous tensors in fp32: Winograd's algorithm and Fourier transforms were observed only for such. */
bool phantom_sums_in_fp32(const struct convolution *c);
bool phantom_is_contiguous_fp32(const struct convolution *c);

/* The number behind the first `key` in text. */
bool phantom_json_number(const char *text, const char *key, int64_t *value);

static inline int64_t over(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t phantom_product(const int64_t *values, int count);

#endif
