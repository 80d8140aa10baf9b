#!/usr/bin/env python3
"""An independent oracle for block replay: replay_oracle.py SNAPSHOT.pickle[.xz] ...

Replays each device trace of a torch.cuda memory snapshot (recorded from the start, default allocator settings, no
expandable segments) and prints one JSON line a device: events, peak allocated, reserved and requested bytes, the event
index of the peak, and how many blocks differ from the snapshot's own block list. Simple and slow on purpose (about 1
us to 1 ms an event); only for checking a faster replay. Loads with a value-only unpickler.
"""

import io
import json
import lzma
import pickle
import sys


class Values(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"refused {module}.{name}")


def load(path):
    with (lzma.open if path.endswith(".xz") else open)(path, "rb") as f:
        return Values(io.BytesIO(f.read())).load()


def rounded(n):
    return max(512, (n + 511) // 512 * 512)


class Replay:
    """State of one device: blocks by start address, each [size, used, segment base]."""

    def __init__(self):
        self.blocks, self.end, self.segments, self.requested = {}, {}, {}, {}
        self.now = {"allocated": 0, "reserved": 0, "requested": 0}
        self.peak, self.peak_event, self.unknown = dict(self.now), -1, 0

    def put(self, start, size, used, seg):
        self.blocks[start] = [size, used, seg]
        self.end[start + size] = start

    def drop(self, start):
        b = self.blocks.pop(start)
        del self.end[start + b[0]]
        return b

    def event(self, i, e):
        a, addr, size = e["action"], e.get("addr", 0), e["size"]
        if a == "segment_alloc":
            self.segments[addr] = size
            self.put(addr, size, False, addr)
            self.now["reserved"] += size
        elif a == "segment_free":
            self.segments.pop(addr)
            self.drop(addr)
            self.now["reserved"] -= size
        elif a == "alloc":
            if addr not in self.blocks or self.blocks[addr][1]:
                self.unknown += 1
                return
            total, _, seg = self.drop(addr)
            need = rounded(size)
            small = self.segments[seg] == 2 << 20
            rest = total - need
            if (rest >= 512) if small else (rest > 1 << 20):
                self.put(addr + need, rest, False, seg)
                total = need
            self.put(addr, total, True, seg)
            self.requested[addr] = size
            self.now["allocated"] += total
            self.now["requested"] += size
        elif a in ("free_requested", "free_completed"):
            if addr not in self.requested:
                self.unknown += 1
                return
            if a == "free_requested":
                self.now["allocated"] -= self.blocks[addr][0]
            else:
                self.now["requested"] -= self.requested.pop(addr)
                total, _, seg = self.drop(addr)
                nxt = self.blocks.get(addr + total)
                if nxt and not nxt[1] and nxt[2] == seg:
                    total += self.drop(addr + total)[0]
                prev = self.end.get(addr)
                if prev is not None and not self.blocks[prev][1] and self.blocks[prev][2] == seg:
                    total += self.drop(prev)[0]
                    addr = prev
                self.put(addr, total, False, seg)
        for k, v in self.now.items():
            if v > self.peak[k]:
                self.peak[k] = v
                if k == "allocated":
                    self.peak_event = i


def main(paths):
    for path in paths:
        snap = load(path)
        for device, trace in enumerate(snap["device_traces"]):
            if not trace:
                continue
            r = Replay()
            for i, e in enumerate(trace):
                r.event(i, e)
            want = {
                b["address"]: (b["size"], b["state"] != "inactive")
                for s in snap["segments"]
                if s["device"] == device
                for b in s["blocks"]
            }
            got = {a: (b[0], b[1]) for a, b in r.blocks.items()}
            differ = sum(want.get(a) != got.get(a) for a in want.keys() | got.keys())
            print(
                json.dumps(
                    {
                        "file": path,
                        "device": device,
                        "events": len(trace),
                        **{"peak_" + k: v for k, v in r.peak.items()},
                        "peak_event": r.peak_event,
                        "blocks": len(want),
                        "blocks_that_differ": differ,
                        "unknown": r.unknown,
                    }
                )
            )


if __name__ == "__main__":
    main(sys.argv[1:])
