// Reports events to Python code, since only Python knows which line of the script is running.
#ifndef PHANTOM_VALUES_LISTENER_H
#define PHANTOM_VALUES_LISTENER_H

#include "phantom.h"

#include <atomic>
#include <cstdint>

namespace values {

enum class Told : int {
    read = 0,    // an unknown value was read, as zero or as falling.h's value
    bound = 1,   // the size of an output is an upper bound
    exact = 2,   // the size of an output was computed from known values
    assumed = 3, // an unknown value was assumed to be finite or valid
    copied = 4,  // a value of this rank was read, which stands for all ranks' values
    // the program asks whether values are close; if torch's own backward asks, it is reported as assumed, and the
    // answer is true
    check = 5,
};

// How to answer a read. Python decides it: the usual value, the other value (turn() in reads.h), or true for a truth
// value.
enum Way : int { usual = 0, other = 1, yes = 2 };

// A listener takes Python's GIL, so its caller must hold no lock. For a read and a check it returns the way to answer.
// The name "truth" means a read of an unknown truth value, and "judged" a read of a comparison's result from falling.h.
using Listener = int (*)(int told, const char* name);

inline std::atomic<Listener> listener{nullptr};

// If a script's signal handler raises while this file calls Python, the exception cannot leave that call. It is raised
// again as soon as the script's Python code goes on: `later` (Py_AddPendingCall) makes Python run `call` with the
// argument then.
struct Again {
    int (*later)(int (*call)(void*), void* argument);
    int (*call)(void*);
    void* argument;
};
inline Again again{};
inline std::atomic<bool> raised{false};

inline Way tell(Told told, const char* name) {
    Listener call = listener.load();
    Way way = call ? static_cast<Way>(call(static_cast<int>(told), name)) : usual;
    if (raised.exchange(false) && again.later(again.call, again.argument))
        raised = true; // Python's queue is full: tried again at the next report
    return way;
}

// Not zero while this thread is inside an operator whose answer is already decided. Reads inside it are not reported.
inline thread_local int answered = 0;

struct Answered {
    Answered() { answered++; }
    ~Answered() { answered--; }
    Answered(const Answered&) = delete;
    Answered& operator=(const Answered&) = delete;
};

// While it lives, reads of this thread return what is in the phantom GPU's memory, with `values` at any size.
struct Announced {
    explicit Announced(bool values) : announce(values ? phantom_announce_known : phantom_announce_reads) {
        announce(1);
    }
    ~Announced() { announce(-1); }
    Announced(const Announced&) = delete;
    Announced& operator=(const Announced&) = delete;

private:
    void (*announce)(int more);
};

} // namespace values

#endif
