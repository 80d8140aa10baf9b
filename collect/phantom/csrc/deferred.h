/* What libphantom.so's sources share of deferred.c; Python has the rest. */
#ifndef DEFERRED_H
#define DEFERRED_H

#include <stddef.h>

/* Has everything made that a range holds of deferred memory. */
void phantom_make_now(const void *address, size_t bytes);

#endif
