//go:build !race

// Package level has the compression levels of the files that a run keeps.
package level

import "github.com/klauspost/compress/zstd"

// Best is the compression level of files that a run keeps.
const Best = zstd.SpeedBestCompression

// Quick is the compression level of kept files whose writing a user waits for. The next better level makes files about
// one per cent smaller and takes half as much time again.
const Quick = zstd.SpeedDefault
