//go:build !unix

package collect

import "time"

// processCPU is used in recording, which this system does not support.
func processCPU() time.Duration { return 0 }
