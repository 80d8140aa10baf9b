//go:build !unix

package collect

import "time"

// processCPU returns 0. Only recording uses it, which this system does not support.
func processCPU() time.Duration { return 0 }
