// Reports to Python, which alone knows the line of the script that is running.
#ifndef PHANTOM_VALUES_LISTENER_H
#define PHANTOM_VALUES_LISTENER_H

#include "phantom.h"

#include <atomic>
#include <cstdint>

namespace values {

enum class Told : int {
    read = 0,    // an unknown value was read: as zero, or as in falling.h
    bound = 1,   // the size of an output is an upper bound
    exact = 2,   // the size of an output was computed from known values
    assumed = 3, // an unknown value was assumed to be finite or valid
    copied = 4,  // a value was read that is this rank's, in place of all ranks'
    // the program asks whether values are close; if torch's own backward asks, it is reported as assumed, and the
    // answer is true
    check = 5,
};

// How a read is to be answered, as Python says: as usual, the other way, or, a truth value, as true.
enum Way : int { usual = 0, other = 1, yes = 2 };

// Takes the GIL, and is called without any lock held. For a read and a check it returns the way to answer. A read
// named truth is of unknown truth values, and one named judged is of a comparison's result from falling.h.
using Listener = int (*)(int told, const char* name);

inline std::atomic<Listener> listener{nullptr};

// An exception that a script's signal handler raises while Python is called from here ends there. It is raised once
// more as soon as Python goes on: later makes `call` run with the argument then (Py_AddPendingCall).
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
        raised = true; // too much waits there: at the next one
    return way;
}

// Set while this thread is inside an operator that has been given its answer: reads inside it are then answered.
inline thread_local int answered = 0;

struct Answered {
    Answered() { answered++; }
    ~Answered() { answered--; }
    Answered(const Answered&) = delete;
    Answered& operator=(const Answered&) = delete;
};

// While it lives, this thread's reads return what is in the phantom's memory.
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
