/* Reads the convolution and the engine from the JSON that cuDNN gives of a plan. */
#include "convolution.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *after(const char *text, const char *key) {
    const char *found = text ? strstr(text, key) : NULL;
    return found ? found + strlen(key) : NULL;
}

bool phantom_json_number(const char *text, const char *key, int64_t *value) {
    const char *at = after(text, key);
    if (at)
        *value = strtoll(at, NULL, 10);
    return at;
}

static bool word(const char *text, const char *key, char *out, size_t size) {
    const char *at = after(text, key);
    size_t length = at ? strcspn(at, "\"") : size;
    if (length >= size)
        return false;
    memcpy(out, at, length);
    out[length] = 0;
    return true;
}

static int list(const char *at, int64_t *values) {
    int count = 0;
    while (at && *at != ']' && count < DIMENSIONS) {
        char *end;
        values[count++] = strtoll(at, &end, 10);
        if (end == at)
            return 0;
        at = *end == ',' ? end + 1 : end;
    }
    return at && *at == ']' ? count : 0;
}

/* Reads the dimensions and strides of the tensor whose name the node has under `key`. */
static bool tensor(struct convolution *c, const char *node, const char *key, int64_t *dimensions, int64_t *strides) {
    char name[40], entry[64];
    if (!word(node, key, name, sizeof name))
        return false;
    snprintf(entry, sizeof entry, "{\"name\":\"%s\"", name);
    const char *at = after(c->text, entry);
    int count = list(after(at, "\"dim\":["), dimensions);
    char type[sizeof c->tensor_type];
    if (count < 4 || (c->dimensions && count != c->dimensions) || list(after(at, "\"stride\":["), strides) != count ||
        !word(at, "\"dataType\":\"", type, sizeof type))
        return false;
    if (c->dimensions && strcmp(type, c->tensor_type))
        return false;
    c->dimensions = count;
    strcpy(c->tensor_type, type);
    return true;
}

int64_t phantom_product(const int64_t *values, int count) {
    int64_t all = 1;
    for (int i = 0; i < count; i++)
        all *= values[i];
    return all;
}

static bool all(const char *node, const char *key, int count, int64_t value) {
    int64_t values[DIMENSIONS];
    if (list(after(node, key), values) != count)
        return false;
    for (int i = 0; i < count; i++)
        if (values[i] != value)
            return false;
    return true;
}

bool phantom_convolution_read(struct convolution *c, const char *text) {
    *c = (struct convolution){
        .text = text, .device = after(text, "\"GPUProfile\":"), .engine = after(text, "\"engine\":")};
    const char *node = after(text, "\"nodes\":[");
    if (!node || !c->device || !c->engine || strstr(node, "},{\"operation\""))
        return false;
    char operation[80];
    if (!word(node, "{\"operation\":\"CUDNN_BACKEND_OPERATION_CONVOLUTION_", operation, sizeof operation) ||
        !word(node, "\"mathPrec\":\"", c->math, sizeof c->math))
        return false;
    c->operation = !strcmp(operation, "FORWARD_DESCRIPTOR")           ? 'f'
                   : !strcmp(operation, "BACKWARD_DATA_DESCRIPTOR")   ? 'd'
                   : !strcmp(operation, "BACKWARD_FILTER_DESCRIPTOR") ? 'w'
                                                                      : 0;
    char op = c->operation;
    int64_t strides[DIMENSIONS], of_image[DIMENSIONS];
    if (!op || !tensor(c, node, op == 'd' ? "\"dX\":\"" : "\"X\":\"", c->image, of_image) ||
        !tensor(c, node, op == 'w' ? "\"dW\":\"" : "\"W\":\"", c->weight, strides) ||
        !tensor(c, node, op == 'f' ? "\"Y\":\"" : "\"dY\":\"", c->output, strides) || c->weight[1] != c->image[1])
        return false;
    c->channels_last = of_image[1] == 1;
    int spatial = c->dimensions - 2;
    bool unit = all(node, "\"stride\":[", spatial, 1);
    c->plain = unit && all(node, "\"pad\":[", spatial, 0);
    c->dense = unit && all(node, "\"dilation\":[", spatial, 1);
    return true;
}

static bool has_type(const struct convolution *c, const char *type) { return !strcmp(c->tensor_type, type); }

bool phantom_sums_in_fp32(const struct convolution *c) {
    bool known =
        has_type(c, "CUDNN_DATA_FLOAT") || has_type(c, "CUDNN_DATA_HALF") || has_type(c, "CUDNN_DATA_BFLOAT16");
    return c->dimensions == 4 && !strcmp(c->math, "CUDNN_DATA_FLOAT") && known;
}

bool phantom_is_contiguous_fp32(const struct convolution *c) {
    return phantom_sums_in_fp32(c) && has_type(c, "CUDNN_DATA_FLOAT") && !c->channels_last;
}
