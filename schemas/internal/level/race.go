//go:build race

// Package level says how hard files that are kept are compressed.
package level

import "github.com/klauspost/compress/zstd"

// Best is low under the race detector. An encoder of the best level takes tens of megabytes, and the detector adds
// four times as much. The detector also makes sync.Pool drop encoders, so they are made again and again. Tests took
// ten times as long, nearly all of it in the kernel.
const Best = zstd.SpeedFastest

// Quick is as low.
const Quick = zstd.SpeedFastest
