#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define CHECK(WHAT)                                           \
    do                                                        \
        if (!(WHAT)) {                                        \
            fprintf(stderr, "line %d: %s\n", __LINE__, #WHAT); \
            _exit(1);                                         \
        }                                                     \
    while (0)

void phantom_defer_to(void (*make)(uint64_t));
bool phantom_defer(void *address, size_t bytes, uint64_t id);
size_t phantom_deferred_dropped(uint64_t *to, size_t room);
void *phantom_deferred_pages(size_t bytes);
void phantom_deferred_made(uint64_t id, void *pages, size_t bytes);
