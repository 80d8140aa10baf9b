/* The workspaces of cuDNN's cluster kernels (compute capability 9.0). Without a device cuDNN plans them for 18
 * multiprocessors (cudnn.c). A kernel's workspace holds copies of what it reduces: one for each cluster that can be
 * resident at once. The profile says how many an H200 holds. How cuDNN cuts the work was found by asking it for 1
 * to 18 clusters:
 *
 * The output is cut into tiles, and the tiles into T clusters. C clusters can be resident at once. Of the T
 * clusters, those that fill whole waves of C are not cut. The R that are left are cut into S parts each, with S at
 * most C / R. The best number of parts depends on the length of the sums, on the tile and on whether there are
 * whole waves. cuDNN does not document how. So it is asked about a convolution with one tile more than whole waves,
 * with the same tile and the same sums, on C / R multiprocessors. A part has a copy of its tile in fp32. There are
 * also counters for the steps that add the parts pairwise.
 *
 * A plan is corrected only if this model reproduces, to the byte, what cuDNN reports for each number of clusters up
 * to 18 multiprocessors. */
#include "rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows and columns of a tile, by cuDNN's number of the tile. They follow from workspaces that cuDNN reports. A row is a
 * pixel, or an output channel for a weight's gradient. A column is a channel. */
static const struct tile {
    int rows, columns;
} tiles[] = {
    [0] = {128, 128}, [1] = {128, 64}, [3] = {256, 128}, [4] = {256, 64},  [5] = {64, 64},
    [6] = {128, 256}, [7] = {64, 128}, [9] = {64, 256},  [18] = {64, 192}, [19] = {128, 192},
};

enum { MOST = 18, HELD = 64, NO_SPLIT = 0, UNSURE = -1 };

struct plan {
    struct convolution of;
    int64_t (*ask)(const char *json);
    int64_t cluster_rows, cluster_columns;
    bool uncut; /* cuDNN chose the kernel that takes no copies */
    struct tile tile;
    int64_t clusters; /* how many clusters of tiles the output has */
    int known[2][MOST + 1]; /* parts() up to MOST, plus 1 */
};

static bool read_plan(struct plan *p, const char *text) {
    struct convolution *of = &p->of;
    if (!phantom_convolution_read(of, text) || strstr(of->engine, "targetSMcount"))
        return false;
    int64_t tile, uncut;
    if (!phantom_json_number(of->engine, "TILE_CGA_M\":", &p->cluster_rows) ||
        !phantom_json_number(of->engine, "TILE_CGA_N\":", &p->cluster_columns) ||
        !phantom_json_number(of->engine, "KNOB_TYPE_TILE_SIZE\":", &tile) ||
        !phantom_json_number(of->engine, "KNOB_TYPE_WORKSPACE\":", &uncut) || tile < 0 ||
        tile >= (int64_t)(sizeof tiles / sizeof *tiles) || !tiles[tile].rows || p->cluster_rows < 1 ||
        p->cluster_columns < 1 || (uncut != 0 && uncut != 1))
        return false;
    p->tile = tiles[tile];
    p->uncut = uncut == 1;
    int spatial = of->dimensions - 2;
    int64_t rows, columns;
    if (of->operation == 'w') {
        rows = over(of->weight[0], p->tile.rows);
        columns = over(of->weight[1], p->tile.columns) * phantom_product(of->weight + 2, spatial);
    } else {
        const int64_t *to = of->operation == 'f' ? of->output : of->image;
        rows = over(to[0] * phantom_product(to + 2, spatial), p->tile.rows);
        columns = over(to[1], p->tile.columns);
    }
    p->clusters = over(rows, p->cluster_rows) * over(columns, p->cluster_columns);
    return true;
}

/* ---- asking cuDNN */

/* The workspace of this plan on so many multiprocessors; -1 if cuDNN refuses. */
static int64_t ask_itself(struct plan *p, int64_t multiprocessors) {
    size_t length = strlen(p->of.text);
    char *json = malloc(length + 64);
    if (!json)
        return -1;
    /* The text ends with three braces: of the knobs, of the engine and of the plan. The engine has targetSMcount. */
    memcpy(json, p->of.text, length - 2);
    sprintf(json + length - 2, ",\"targetSMcount\":%lld}}", (long long)multiprocessors);
    int64_t workspace = p->ask(json);
    free(json);
    return workspace;
}

static int tensor_json(char *out, size_t size, const char *name, const char *type, const int64_t d[4]) {
    return snprintf(out, size,
                    "{\"name\":\"%s\",\"dataType\":\"%s\",\"dim\":[%lld,%lld,%lld,%lld],\"stride\":[%lld,1,%lld,%lld],"
                    "\"isVirtual\":false,"
                    "\"isByValue\":false,\"vectCount\":1,\"vectDim\":-1,\"ptrAlignment\":32,"
                    "\"reordering\":\"CUDNN_TENSOR_REORDERING_NONE\"}",
                    name, type, (long long)d[0], (long long)d[1], (long long)d[2], (long long)d[3],
                    (long long)(d[1] * d[2] * d[3]), (long long)(d[1] * d[3]), (long long)d[1]);
}

/* The workspace of a convolution of `count` whole tiles, channels last, with this plan's kernel and tile, and sums as
 * long as the plan's, or num / den as long; -1 if cuDNN refuses. */
static int64_t ask_tiles(struct plan *p, int64_t count, int64_t multiprocessors, int64_t num, int64_t den) {
    int spatial = p->of.dimensions - 2;
    int64_t few = 16, x[4], w[4], y[4], pad[2] = {0, 0};
    if (p->of.operation == 'w') {
        /* A weight's gradient sums over the output's pixels, 32 or 64 at a time. */
        int64_t sums = p->of.output[0] * phantom_product(p->of.output + 2, spatial),
                high = num == den ? over(sums, 32) : sums * num / den / 64 * 2;
        memcpy(x, (int64_t[]){1, few, high, 32}, sizeof x);
        memcpy(w, (int64_t[]){count * p->tile.rows, few, 1, 1}, sizeof w);
        memcpy(y, (int64_t[]){1, w[0], high, 32}, sizeof y);
    } else {
        /* A sum runs over the channels of each of the filter's taps. */
        bool forward = p->of.operation == 'f';
        int64_t channels = over(p->of.weight[forward ? 1 : 0], 8) * 8;
        int64_t r = phantom_product(p->of.weight + 2, spatial - 1), s = p->of.weight[p->of.dimensions - 1];
        int64_t to[4] = {1, few, p->tile.rows, count}, from[4] = {1, channels, p->tile.rows + r - 1, count + s - 1};
        memcpy(forward ? y : x, to, sizeof to);
        memcpy(forward ? x : y, from, sizeof from);
        memcpy(w, (int64_t[]){forward ? few : channels, forward ? channels : few, r, s}, sizeof w);
        if (!forward)
            memcpy(pad, (int64_t[]){r - 1, s - 1}, sizeof pad);
    }
    /* Writes the plan's engine, with clusters of one tile. */
    char engine[1024];
    int used = 0;
    for (const char *at = p->of.engine; *at && used < (int)sizeof engine - 64;) {
        engine[used++] = *at++;
        const char *key = engine + used - 12;
        if (used > 12 && (!memcmp(key, "TILE_CGA_M\":", 12) || !memcmp(key, "TILE_CGA_N\":", 12))) {
            engine[used++] = '1';
            at += strspn(at, "0123456789");
        }
    }
    if (used < 3 || used >= (int)sizeof engine - 64)
        return -1;
    sprintf(engine + used - 2, ",\"targetSMcount\":%lld}}", (long long)multiprocessors);
    size_t size = strlen(p->of.text) + 2048;
    char *json = malloc(size), tensors[3][512];
    if (!json)
        return -1;
    tensor_json(tensors[0], sizeof tensors[0], "119", p->of.tensor_type, w);
    tensor_json(tensors[1], sizeof tensors[1], "120", p->of.tensor_type, x);
    tensor_json(tensors[2], sizeof tensors[2], "121", p->of.tensor_type, y);
    static const char *const names[] = {"FORWARD", "BACKWARD_DATA", "BACKWARD_FILTER"};
    static const char *const modes[] = {"CONV_FORWARD", "CONV_BWD_DATA", "CONV_BWD_FILTER"};
    int kind = p->of.operation == 'f' ? 0 : p->of.operation == 'd' ? 1 : 2;
    const char *graph = strstr(p->of.text, "\"operationGraph\":"), *device_end = strstr(p->of.device, ",\"engine\":");
    int64_t workspace = -1;
    if (graph && device_end &&
        snprintf(json, size,
                 "%.*s\"operationGraph\":{\"finalizeMode\":\"%s\",\"tensors\":[%s,%s,%s],\"nodes\":[{"
                 "\"operation\":\"CUDNN_BACKEND_OPERATION_CONVOLUTION_%s_DESCRIPTOR\","
                 "\"mode\":\"CUDNN_CROSS_CORRELATION\",\"mathPrec\":\"%s\",\"alpha\":1.0,\"beta\":0.0,"
                 "\"pad\":[%lld,%lld],\"stride\":[1,1],\"dilation\":[1,1],"
                 "\"%s\":\"120\",\"%s\":\"119\",\"%s\":\"121\"}]},\"GPUProfile\":%.*s,\"engine\":%s",
                 (int)(graph - p->of.text), p->of.text, modes[kind], tensors[0], tensors[1], tensors[2], names[kind],
                 p->of.math, (long long)pad[0], (long long)pad[1], kind == 1 ? "dX" : "X", kind == 2 ? "dW" : "W",
                 kind == 0 ? "Y" : "dY", (int)(device_end - p->of.device), p->of.device, engine) < (int)size)
        workspace = p->ask(json);
    free(json);
    return workspace;
}

/* ---- how cuDNN cuts */

/* The steps to add s parts pairwise, then their sums, until one is left. Each step has a counter. */
static int64_t steps(int64_t s) {
    int64_t all = 0;
    do
        all += s = over(s, 2);
    while (s > 1);
    return all;
}

/* Bytes for `count` tiles cut into s parts each. */
static int64_t cut_bytes(const struct plan *p, int64_t count, int64_t s) {
    return count * (s * p->tile.rows * p->tile.columns * (int64_t)sizeof(float) + 4 * steps(s)) + 159;
}

/* Into how many parts cuDNN cuts one tile on `most` multiprocessors, beside a whole wave or alone: NO_SPLIT, 2 or more,
 * or UNSURE. */
static int ask_parts(struct plan *p, bool waves, int64_t most, int64_t num, int64_t den) {
    int64_t workspace = ask_tiles(p, waves ? most + 1 : 1, most, num, den);
    if (workspace <= 0)
        return workspace ? UNSURE : NO_SPLIT;
    for (int64_t s = 2; s <= most; s++)
        if (cut_bytes(p, 1, s) == workspace)
            return s;
    return UNSURE;
}

static int parts(struct plan *p, bool waves, int64_t most) {
    int64_t asked = most < MOST ? most : MOST;
    int *known = &p->known[waves][asked];
    if (!*known)
        *known = ask_parts(p, waves, asked, 1, 1) + 2;
    int s = *known - 2;
    if (most <= MOST || s < 0)
        return s;
    /* `most` is more than cuDNN plans for without a device. A plan that took no more than half of the possible parts
     * would not take more if more were possible. */
    if (s <= MOST / 2)
        return s;
    if (waves)
        return UNSURE;
    if (s < MOST)
        return s;
    if (p->of.operation != 'w')
        return UNSURE;
    /* Without whole waves cuDNN takes as many parts as have enough to sum up. So it is asked for fewer parts with sums
     * that are shorter in proportion. */
    int64_t least = MOST, limit = most + 1;
    while (least + 1 < limit) {
        int64_t middle = (least + limit) / 2;
        int taken = ask_parts(p, false, MOST, MOST, middle);
        if (taken < 0)
            return UNSURE;
        *(taken == MOST ? &least : &limit) = middle;
    }
    return least;
}

/* The bytes of a workspace that depend on the number of resident clusters, or UNSURE. */
static int64_t extra_bytes(struct plan *p, int64_t resident) {
    int64_t waves = p->clusters / resident, rest = p->clusters % resident;
    if (!p->uncut && rest && resident / rest >= 2) {
        int s = parts(p, waves > 0, resident / rest);
        if (s < 0)
            return UNSURE;
        if (s)
            return cut_bytes(p, rest * p->cluster_rows * p->cluster_columns, s) + (waves > 1 ? 4 : 0);
    }
    return waves + !!rest > 2 ? 131 : 0;
}

/* How many clusters of a size the device holds at least and at most. A larger cluster's place also holds a smaller
 * one. */
static bool residents(int64_t size, int64_t *least, int64_t *most) {
    const struct phantom_profile *profile = phantom_profile();
    int64_t count = sizeof profile->clusters / sizeof *profile->clusters;
    if (size < 1 || size >= count || !profile->clusters[1])
        return false;
    *least = *most = profile->clusters[size];
    if (*least)
        return true;
    *most = profile->multiprocessors / size;
    for (int64_t i = size + 1; i < count && !*least; i++)
        *least = profile->clusters[i];
    for (int64_t i = size - 1; i > 0; i--)
        if (profile->clusters[i]) {
            *most = profile->clusters[i] < *most ? profile->clusters[i] : *most;
            break;
        }
    return *least;
}

int64_t phantom_clusters(const struct phantom_question *question) {
    const char *text = question->plan;
    int64_t told = question->told, least, most;
    if (!phantom_profile()->clusters[1] || !strstr(text, "TILE_CGA_M"))
        return PHANTOM_UNKNOWN;
    struct plan *p = calloc(1, sizeof *p);
    if (!p)
        return PHANTOM_UNKNOWN;
    p->ask = question->ask;
    int64_t answer = PHANTOM_UNKNOWN;
    size_t length = strlen(text);
    if (length < 3 || strcmp(text + length - 3, "}}}") || !read_plan(p, text))
        goto done;
    int64_t size = p->cluster_rows * p->cluster_columns;
    if (!residents(size, &least, &most))
        goto done;
    /* The workspaces that cuDNN reports for 1, 2, 3... clusters. The last equals its report for no given number. */
    int64_t said[MOST + 1], count = 0;
    while (count < MOST && (said[count + 1] = ask_itself(p, (count + 1) * size)) >= 0)
        count++;
    if (!count || said[count] != told)
        goto done;
    int64_t extra = extra_bytes(p, count), base = told - extra;
    if (extra < 0 || base < 0)
        goto done;
    for (int64_t i = 1; i < count; i++)
        if ((extra = extra_bytes(p, i)) < 0 || said[i] != base + extra)
            goto done;
    for (int64_t i = least; i <= most; i++) {
        if ((extra = extra_bytes(p, i)) < 0 || (answer >= 0 && base + extra != answer)) {
            answer = PHANTOM_UNKNOWN;
            break;
        }
        answer = base + extra;
    }
done:
    free(p);
    return answer;
}
