//go:build linux && cgo

package nvml

/*
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

// The two versions of NVML's result, as in its ABI.
typedef struct { unsigned long long total, free, used; } memory1;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory2;
typedef int (*query)(void *device, void *memory);

typedef struct { long long time_ns; unsigned long long used, free, reserved; int api; } reading;

static long long now(clockid_t clock) {
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

// api is 0 if the device does not answer.
static void read_memory(void *device, query v1, query v2, reading *r) {
	memory2 two = {.version = sizeof(memory2) | 2u << 24};
	memory1 one;
	*r = (reading){.time_ns = now(CLOCK_REALTIME)};
	if (v2 && v2(device, &two) == 0) {
		*r = (reading){r->time_ns, two.used, two.free, two.reserved, 2};
	} else if (v1 && v1(device, &one) == 0) {
		*r = (reading){r->time_ns, one.used, one.free, 0, 1};
	}
}

// watch returns the number of ticks that it took, which is lower than requested if it was stopped.
static int watch(void **devices, int n, query v1, query v2, long long interval, long long *next,
                 int ticks, int *stopped, reading *out) {
	if (*next == 0) *next = now(CLOCK_MONOTONIC);
	for (int t = 1;; t++) {
		struct timespec at = {*next / 1000000000LL, *next % 1000000000LL};
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, 0) == EINTR) {}
		for (int i = 0; i < n; i++) read_memory(devices[i], v1, v2, out++);
		*next += interval;
		long long late = now(CLOCK_MONOTONIC) - *next;
		if (late > 0) *next += (late / interval + 1) * interval;
		if (t == ticks || __atomic_load_n(stopped, __ATOMIC_SEQ_CST)) return t;
	}
}

static int handle(unsigned index, void **device) {
	int (*f)(unsigned, void **) = (int (*)(unsigned, void **))dlsym(RTLD_DEFAULT, "nvmlDeviceGetHandleByIndex_v2");
	return f ? f(index, device) : -1;
}

static query symbol(const char *name) { return (query)dlsym(RTLD_DEFAULT, name); }
*/
import "C"

import (
	"sync/atomic"
	"time"
	"unsafe"
)

// native returns a function that reads in C, if all devices belong to a real library. go-nvml has loaded the library
// globally but does not reveal device handles, so native looks them up again.
func native(devices []Device, interval time.Duration) func(ticks int, stopped *atomic.Int32) []Reading {
	name1, name2 := C.CString("nvmlDeviceGetMemoryInfo"), C.CString("nvmlDeviceGetMemoryInfo_v2")
	defer C.free(unsafe.Pointer(name1))
	defer C.free(unsafe.Pointer(name2))
	v1, v2 := C.symbol(name1), C.symbol(name2)
	if len(devices) == 0 || v1 == nil {
		return nil
	}
	handles := make([]unsafe.Pointer, len(devices))
	for i, d := range devices {
		own, ok := d.(*device)
		if !ok || C.handle(C.unsigned(own.info.Index), &handles[i]) != 0 {
			return nil
		}
	}
	var next C.longlong
	return func(ticks int, stopped *atomic.Int32) []Reading {
		raw := make([]C.reading, ticks*len(devices))
		took := C.watch(&handles[0], C.int(len(handles)), v1, v2, C.longlong(interval), &next, C.int(ticks),
			(*C.int)(unsafe.Pointer(stopped)), &raw[0])
		out := make([]Reading, int(took)*len(devices))
		for i, r := range raw[:len(out)] {
			out[i] = Reading{int64(r.time_ns), Memory{int64(r.used), int64(r.free), int64(r.reserved), int32(r.api)},
				r.api != 0}
		}
		return out
	}
}
