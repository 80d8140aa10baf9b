// Package spool is the format of the crash-safe journal that the agent writes inside the experiment's process and that
// ingest reads. dpsight derives everything that it knows from inside a run from the journal.
//
// # Two files while the process runs
//
// A recording process owns <pid>-<start>.marks and <pid>-<start>.frames in the run's spool folder (start: Unix time
// in ns, hexadecimal).
//
// Marks is a shared memory map of 32-byte records, little endian. Record k lies at offset 32·k, so a record needs
// no length and no flush, and written records survive SIGKILL. Slot 0 is the header:
//
//	magic "DPSM" | version u16 | record size u16 | pid u32 | request u32 | start i64 (Unix ns) | error u32 |
//	4 reserved bytes
//
// Error is the errno that stopped the agent from writing, for example on a full disk: 0 = none.
//
// The collector sets request to [RequestDrain] to ask for a drain. The agent answers at its next mark: it sets
// request to [Answering], drains, and clears the word when the drain is written. A record:
//
//	k u32 | thread u16 | kind u8 | flags u8 | time i64 (Unix ns) | a u64 | b u64
//
// The file is allocated in segments ahead of use, of 1 MiB at first and of at most 32 MiB (posix_fallocate: a sparse
// map on a full disk would kill the training with SIGBUS). So records after the last one are zero. A zero record
// before the last one is a hole: the writing thread died between counting and writing.
//
// Frames is append-only: "DPSF", version u16, 2 reserved bytes, then frames, little endian:
//
//	type u8 | 3 zero bytes | crc u32 | length u64 | payload
//
// crc is the CRC-32 (IEEE) of type, zeros, length and payload, in this order. The checksum is not CRC-32C, since
// Python has CRC-32 in C, at gigabytes a second. A reader takes every whole frame and stops at the first torn one.
//
// # One file afterwards
//
// Sealing packs both files into rank-N.dps.zst: a zstd stream of "DPSJ", version u16, flags u8, a reserved byte, the
// parts (each with its length u64 before its bytes), and a seal. The seal has the numbers of marks and whole frames,
// the last mark's number, and digests of both files (see seal.go). A reader refuses a journal that does not match its
// seal. Older journals have no seal, only zstd's checksum of all bytes.
//
// In version 1 the parts are the two files: the marks up to the last record, and the frames unchanged, with a torn
// tail. In version 2 the two files are split into columns and streams that compress to a third (see sealed.go), and can
// be restored to the byte. Version 3, the current one, splits further and is a quarter smaller than version 2. Readers
// read all three versions. A journal that cannot be split is written as version 1.
//
// N is the process's RANK if it has one and the number is free, else the next free number in order of start.
package spool
