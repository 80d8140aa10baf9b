//go:build race

// Package level says how hard files that are kept are compressed.
package level

import "github.com/klauspost/compress/zstd"

// Best is low under the race detector: an encoder of the best level takes tens of megabytes, the detector four times as
// much beside it, and sync.Pool, which it makes forget, has them made again and again. Tests took ten times as long,
// nearly all of it in the kernel.
const Best = zstd.SpeedFastest

// Quick is as low.
const Quick = zstd.SpeedFastest
