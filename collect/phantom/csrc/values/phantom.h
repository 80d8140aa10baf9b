// The functions of libphantom.so that this library needs. libphantom.so is loaded before it.
#ifndef PHANTOM_VALUES_PHANTOM_H
#define PHANTOM_VALUES_PHANTOM_H

#include <cstddef>
#include <cstdint>

extern "C" {
void phantom_answer(int64_t value);
int phantom_captures_running(void);
void phantom_strict_reads(void);
void phantom_announce_reads(int more);
void phantom_announce_known(int more);
void phantom_on_written(void (*call)(const void* const* addresses, size_t count));
int phantom_reduction(int* operation);
}

#endif
