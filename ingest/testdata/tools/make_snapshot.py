#!/usr/bin/env python3
"""Writes a large, consistent torch.cuda memory snapshot for benchmarks: make_snapshot.py EVENTS OUT.pickle [DEPTH]
[SEED].

A training-like load (parameters that stay; steps of a forward that keeps and a backward that frees, with temporaries)
runs through a simulated caching allocator (512 B rounding; small pool <= 1 MiB in 2 MiB segments; large pool in 20 MiB
segments, or 2 MiB multiples from 10 MiB; splitting; merging), so that a replay of the trace gives the block list that
the snapshot holds. Stacks have DEPTH frames (35) from 600 distinct ones; each event holds a list of its own, as torch
writes them. Pickle protocol 4. Prints the true peak as JSON.
"""

import bisect
import json
import pickle
import random
import sys

MIB = 1 << 20


class Allocator:
    def __init__(self, emit):
        self.emit, self.top = emit, 0x7F0000000000
        self.blocks, self.end, self.seg = {}, {}, {}  # start -> [size, used, segment]; end -> start; segment -> size
        self.free = {True: [], False: []}  # small? -> sorted (size, start)
        self.allocated = self.reserved = self.peak = 0

    def _put(self, start, size, used, seg):
        self.blocks[start], self.end[start + size] = [size, used, seg], start
        if not used:
            bisect.insort(self.free[self.seg[seg] == 2 * MIB], (size, start))

    def _take(self, start):
        size, used, seg = self.blocks.pop(start)
        del self.end[start + size]
        if not used:
            pool = self.free[self.seg[seg] == 2 * MIB]
            pool.pop(bisect.bisect_left(pool, (size, start)))
        return size, seg

    def malloc(self, want):
        n = max(512, (want + 511) // 512 * 512)
        small = n <= MIB
        pool = self.free[small]
        i = bisect.bisect_left(pool, (n, 0))
        if i == len(pool):
            size = 2 * MIB if small else 20 * MIB if n < 10 * MIB else -(-n // (2 * MIB)) * 2 * MIB
            start, self.top = self.top, self.top + size + 2 * MIB
            self.seg[start] = size
            self.reserved += size
            self.emit("segment_alloc", start, size)
            self._put(start, size, False, start)
            i = bisect.bisect_left(pool, (n, 0))
        start = pool[i][1]
        size, seg = self._take(start)
        rest = size - n
        if rest >= 512 if small else rest > MIB:
            self._put(start + n, rest, False, seg)
            size = n
        self._put(start, size, True, seg)
        self.allocated += size
        self.peak = max(self.peak, self.allocated)
        self.emit("alloc", start, want)
        return start, want

    def release(self, block):
        start, want = block
        self.emit("free_requested", start, want)
        self.emit("free_completed", start, want)
        self.allocated -= self.blocks[start][0]
        size, seg = self._take(start)
        nxt = self.blocks.get(start + size)
        if nxt and not nxt[1] and nxt[2] == seg:
            size += self._take(start + size)[0]
        prev = self.end.get(start)
        if prev is not None and not self.blocks[prev][1] and self.blocks[prev][2] == seg:
            size += self._take(prev)[0]
            start = prev
        self._put(start, size, False, seg)


def main(events, path, depth=35, seed=7):
    rnd = random.Random(seed)
    frames = [
        {"name": f"fn_{i}", "filename": f"site-packages/torch/mod_{i % 400}.py", "line": i % 900} for i in range(3000)
    ]
    stacks = [rnd.sample(frames, depth) for _ in range(600)]
    trace, clock, live = [], [1759252584000000], {}

    def emit(action, addr, size):
        clock[0] += rnd.randint(0, 4)
        frames = list(rnd.choice(stacks))
        trace.append(
            {
                "action": action,
                "addr": addr,
                "size": size,
                "stream": 0,
                "time_us": clock[0],
                "frames": frames,
                "compile_context": "N/A",
                "user_metadata": "",
            }
        )
        if action == "alloc":
            live[addr] = (size, frames)
        elif action == "free_completed":
            del live[addr]

    a = Allocator(emit)
    keep = [a.malloc(rnd.choice([2048, 8192, 4 * MIB, 16 * MIB])) for _ in range(300)]
    shapes = [
        rnd.choice([rnd.randint(1, 4096), rnd.randint(4096, MIB), rnd.randint(MIB, 40 * MIB)]) for _ in range(900)
    ]
    while len(trace) < events:
        saved = []
        for i, s in enumerate(shapes):
            saved.append(a.malloc(s))
            if i % 3 == 0:
                a.release(a.malloc(shapes[(i * 7) % 900] // 2 + 1))
        while saved:
            temporary = a.malloc(saved[-1][1])
            a.release(saved.pop())
            a.release(temporary)
    segments = []
    for start, size in a.seg.items():
        blocks, at = [], start
        while at < start + size:
            n, used, _ = a.blocks[at]
            want, fr = live.get(at, (n, []))
            blocks.append(
                {
                    "address": at,
                    "size": n,
                    "requested_size": want,
                    "state": "active_allocated" if used else "inactive",
                    "frames": list(fr),
                }
            )
            at += n
        use = sum(b["size"] for b in blocks if b["state"] != "inactive")
        segments.append(
            {
                "device": 0,
                "address": start,
                "total_size": size,
                "allocated_size": use,
                "active_size": use,
                "requested_size": sum(b["requested_size"] for b in blocks if b["state"] != "inactive"),
                "stream": 0,
                "segment_type": "small" if size == 2 * MIB else "large",
                "segment_pool_id": (0, 0),
                "is_expandable": False,
                "frames": [],
                "blocks": blocks,
            }
        )
    with open(path, "wb") as f:
        pickle.dump(
            {"segments": segments, "device_traces": [trace], "allocator_settings": {}, "external_annotations": []},
            f,
            protocol=4,
        )
    print(
        json.dumps(
            {
                "events": len(trace),
                "peak_allocated": a.peak,
                "reserved": a.reserved,
                "allocated": a.allocated,
                "kept": len(keep),
            }
        )
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:]))
