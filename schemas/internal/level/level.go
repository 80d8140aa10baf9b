//go:build !race

// Package level says how hard files that are kept are compressed.
package level

import "github.com/klauspost/compress/zstd"

// Best is the level of files that are kept.
const Best = zstd.SpeedBestCompression

// Quick is the level of files that are kept and that somebody waits for. The next better one saves one percent at most,
// and takes half as much time again.
const Quick = zstd.SpeedDefault
