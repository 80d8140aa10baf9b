#include "phantom.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* Tells the agent which lines of the user's own code are reached, before Python 3.12. Python's own sys.settrace
 * copies the variables of each function that it traces, and the copy keeps tensors alive. A tracer in C makes no
 * copy. */

typedef struct object object; /* Python's */

enum { CALL = 0, LINE = 2, RETURN = 3 };

static struct {
    void (*set_trace)(int (*)(object *, object *, int, object *), object *);
    object *(*code_of)(object *frame);
    int (*line_of)(object *frame);
    object *(*call)(object *function, ...);
    object *(*number)(long);
    int (*is_true)(object *);
    void (*forget)(object *);
    object *(*attribute)(object *, const char *);
    long (*to_long)(object *);
} python;

/* The agent's functions. They are borrowed references: the agent keeps the functions alive until it has ended the
 * reports. */
static object *reached, *left, *resumed, *is_own;
static int on;

/* A place is a line of a code object, or with line 0 the whole code object. Places lie in a hash table. */
struct place {
    object *code;
    int line;
    int value;
};

/* OWN_PAUSES marks the user's own generators and coroutines, which may resume in the middle of a line. */
enum { OWN = 1, OWN_PAUSES = 2, FOREIGN = 3, PASSED_OVER = 4, SIZE = 1 << 14 };

enum { CO_GENERATOR = 0x20, CO_COROUTINE = 0x80, CO_ASYNC_GENERATOR = 0x200 }; /* Python's, in co_flags */

static struct place places[SIZE];
static unsigned used;

static struct place *find(object *code, int line) {
    size_t hash = ((size_t)code >> 4) * 31 + (size_t)line * 2654435761u;
    for (unsigned i = 0;; i++) {
        struct place *p = &places[(hash + i) % SIZE];
        if (!p->code || (p->code == code && p->line == line))
            return p;
    }
}

static void note(object *code, int line, int value) {
    if (used > SIZE / 2) { /* forgets all places, so the agent is asked about each again */
        memset(places, 0, sizeof places);
        used = 0;
    }
    struct place *p = find(code, line);
    used += !p->code;
    *p = (struct place){code, line, value};
}

static int pauses(object *code) {
    object *flags = python.attribute(code, "co_flags");
    if (!flags)
        return -1;
    long set = python.to_long(flags);
    python.forget(flags);
    return (set & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) != 0;
}

/* Returns OWN, OWN_PAUSES or FOREIGN for a code object, or -1 if the agent's function raised. */
static int whose(object *code) {
    int known = find(code, 0)->value;
    if (known)
        return known;
    object *answer = python.call(is_own, code, NULL);
    if (!answer)
        return -1;
    int yes = python.is_true(answer);
    python.forget(answer);
    if (yes < 0)
        return -1;
    int paused = yes ? pauses(code) : 0;
    if (paused < 0)
        return -1;
    known = !yes ? FOREIGN : paused ? OWN_PAUSES : OWN;
    note(code, 0, known);
    return known;
}

static int reach(object *code, int line) {
    if (line <= 0 || find(code, line)->value == PASSED_OVER)
        return 0;
    object *number = python.number(line);
    if (!number)
        return -1;
    object *answer = python.call(reached, code, number, NULL);
    python.forget(number);
    if (!answer)
        return -1;
    if (python.is_true(answer))
        note(code, line, PASSED_OVER);
    python.forget(answer);
    return 0;
}

static int tell(object *function, object *code) {
    object *answer = python.call(function, code, NULL);
    if (!answer)
        return -1;
    python.forget(answer);
    return 0;
}

static int trace(object *self, object *frame, int what, object *argument) {
    if (!on || (what != CALL && what != LINE && what != RETURN))
        return 0;
    object *code = python.code_of(frame);
    int who = whose(code), result = who < 0 ? -1 : 0;
    if (who == OWN || who == OWN_PAUSES) {
        if (what == LINE)
            result = reach(code, python.line_of(frame));
        else if (what == RETURN)
            result = tell(left, code);
        else if (who == OWN_PAUSES) /* at a begin a LINE event follows; at a resume none may */
            result = tell(resumed, code);
    }
    python.forget(code);
    return result;
}

/* From this call on the lines that this thread reaches are reported. The caller holds Python's lock, as for all
 * functions below. */
PHANTOM_API void phantom_lines_follow(object *line_reached, object *function_left, object *function_resumed,
                                      object *code_is_own) {
    if (on) { /* this thread, or the script, may have set another tracer */
        python.set_trace(trace, NULL);
        return;
    }
    python.set_trace = dlsym(RTLD_DEFAULT, "PyEval_SetTrace");
    python.code_of = dlsym(RTLD_DEFAULT, "PyFrame_GetCode");
    python.line_of = dlsym(RTLD_DEFAULT, "PyFrame_GetLineNumber");
    python.call = dlsym(RTLD_DEFAULT, "PyObject_CallFunctionObjArgs");
    python.number = dlsym(RTLD_DEFAULT, "PyLong_FromLong");
    python.is_true = dlsym(RTLD_DEFAULT, "PyObject_IsTrue");
    python.forget = dlsym(RTLD_DEFAULT, "Py_DecRef");
    python.attribute = dlsym(RTLD_DEFAULT, "PyObject_GetAttrString");
    python.to_long = dlsym(RTLD_DEFAULT, "PyLong_AsLong");
    if (!python.set_trace || !python.code_of || !python.line_of || !python.call || !python.number || !python.is_true ||
        !python.forget || !python.attribute || !python.to_long)
        return;
    reached = line_reached, left = function_left, resumed = function_resumed, is_own = code_is_own;
    memset(places, 0, sizeof places);
    used = 0;
    on = 1;
    python.set_trace(trace, NULL);
}

/* Ends the reports. If `mine`, trace() is this thread's tracer and is removed. Otherwise this thread's tracer stays as
 * it is. In any case trace() reports nothing more. */
PHANTOM_API void phantom_lines_rest(int mine) {
    int was = on;
    on = 0;
    if (was && mine)
        python.set_trace(NULL, NULL);
}

/* Lines that were passed over are reported again from now on. */
PHANTOM_API void phantom_lines_look_again(void) {
    for (unsigned i = 0; i < SIZE; i++)
        if (places[i].value == PASSED_OVER)
            places[i].value = 0;
}
