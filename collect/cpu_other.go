//go:build !unix

package collect

import "time"

// processCPU is for recording, which is not done here.
func processCPU() time.Duration { return 0 }
