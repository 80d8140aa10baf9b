package phantom

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lockBuild waits until no other process builds into the folder. The lock only saves work. A process that does not get
// it, because the lock file was removed meanwhile, builds at the same time.
func lockBuild(ctx context.Context, folder string) (unlock func(), err error) {
	file, err := os.OpenFile(folder+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot build the phantom GPU: %w", err)
	}
	for syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == syscall.EWOULDBLOCK {
		select {
		case <-ctx.Done():
			_ = file.Close()
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return func() {
		_ = os.Remove(file.Name())
		_ = file.Close()
	}, nil
}
