/* The functions of deferred.c that other sources of libphantom.so call. Python calls its other functions. */
#ifndef DEFERRED_H
#define DEFERRED_H

#include <stddef.h>

/* Makes the values of all deferred memory in a range. */
void phantom_make_now(const void *address, size_t bytes);

#endif
