/* Advances the state of torch's CPU generator as if so many values had been drawn. This code updates several of a
 * Mersenne Twister's 624 words in a nanosecond, while making the numbers costs a hundred times as much. Jumping ahead
 * by polynomials would take the same time for any count, but for seven billion weights it would save only a second. */
#include "phantom.h"

#include <string.h>

#define WORDS 624
#define LAG 397

/* The layout of the state that Generator.get_state() returns: the structure of torch 0.4, in which each word takes 64
 * bits, and what later versions appended. */
struct state {
    uint64_t seed;
    int32_t left, seeded;
    uint64_t next;
    uint64_t words[WORDS];
    double normal[3];
    int32_t normal_is_valid;
    float next_normal;
    _Bool next_normal_is_valid;
};

static inline uint32_t twist(uint32_t u, uint32_t v) {
    return ((u & 0x80000000u) | (v & 0x7fffffffu)) >> 1 ^ (-(v & 1) & 0x9908b0dfu);
}

/* Renews all words `times` times. Each loop covers words that do not depend on each other, so that the compiler can do
 * eight at a time. */
__attribute__((optimize("O3", "tree-vectorize"), target_clones("avx2", "default"))) static void
turn(uint32_t *restrict w, uint64_t times) {
    while (times--) {
#pragma GCC ivdep
        for (int i = 0; i < WORDS - LAG; i++)
            w[i] = w[i + LAG] ^ twist(w[i], w[i + 1]);
#pragma GCC ivdep
        for (int i = WORDS - LAG; i < 2 * (WORDS - LAG); i++)
            w[i] = w[i + LAG - WORDS] ^ twist(w[i], w[i + 1]);
#pragma GCC ivdep
        for (int i = 2 * (WORDS - LAG); i < WORDS - 1; i++)
            w[i] = w[i + LAG - WORDS] ^ twist(w[i], w[i + 1]);
        w[WORDS - 1] = w[LAG - 1] ^ twist(w[WORDS - 1], w[0]);
    }
}

PHANTOM_API bool phantom_advance(void *bytes, size_t size, uint64_t draws) {
    struct state *s = bytes;
    if (size != sizeof *s || !s->seeded || s->left < 1 || s->left > WORDS || s->next > WORDS)
        return false;
    if (!draws)
        return true;
    /* The next left - 1 draws need no turn of the words. The draw after them turns the words first. */
    if (draws < (uint64_t)s->left) {
        s->left -= (int32_t)draws;
        s->next += draws;
        return true;
    }
    draws -= (uint64_t)s->left;
    uint32_t words[WORDS];
    for (int i = 0; i < WORDS; i++)
        words[i] = (uint32_t)s->words[i];
    turn(words, draws / WORDS + 1);
    for (int i = 0; i < WORDS; i++)
        s->words[i] = words[i];
    s->left = (int32_t)(WORDS - draws % WORDS);
    s->next = draws % WORDS + 1;
    return true;
}
