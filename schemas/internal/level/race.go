//go:build race

// Package level has the compression levels of the files that a run keeps.
package level

import "github.com/klauspost/compress/zstd"

// Best is low under the race detector. An encoder of the best level takes tens of megabytes, and the detector adds four
// times as much. The detector also makes sync.Pool drop encoders, so they are made again and again. With the best
// level, tests took ten times as long, mostly in the kernel.
const Best = zstd.SpeedFastest

// Quick is as low as Best under the race detector.
const Quick = zstd.SpeedFastest
