// What a script should know of: told to Python, which alone knows the line of the script that is running.
#ifndef PHANTOM_VALUES_LISTENER_H
#define PHANTOM_VALUES_LISTENER_H

#include "phantom.h"

#include <atomic>
#include <cstdint>

namespace values {

enum class Told : int {
    read = 0,    // a value that nobody knows was read: as zero, or as falling.h has it
    bound = 1,   // the size of an output is an upper bound
    exact = 2,   // the size of an output was computed from known values
    assumed = 3, // a value that nobody knows was taken for finite
};

// Takes the GIL, and is called without any lock held.
using Listener = void (*)(int told, const char* name);

inline std::atomic<Listener> listener{nullptr};

inline void tell(Told told, const char* name) {
    if (Listener call = listener.load())
        call(static_cast<int>(told), name);
}

// Set while this thread is inside an operator that has been given its answer: reads inside it are then answered.
inline thread_local int answered = 0;

struct Answered {
    Answered() { answered++; }
    ~Answered() { answered--; }
    Answered(const Answered&) = delete;
    Answered& operator=(const Answered&) = delete;
};

// While it lives this thread's reads give what stands in the phantom's memory.
struct Announced {
    explicit Announced(bool values) : announce(values ? phantom_announce_known : phantom_announce_reads) { announce(1); }
    ~Announced() { announce(-1); }
    Announced(const Announced&) = delete;
    Announced& operator=(const Announced&) = delete;

private:
    void (*announce)(int more);
};

} // namespace values

#endif
