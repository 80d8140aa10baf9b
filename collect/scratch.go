package collect

import (
	"os"
	"path/filepath"
	"time"

	"github.com/dpsight/dpsight/schemas"
)

// youngScratch is the age up to which an unlocked folder is kept: its collector may be about to lock it.
const youngScratch = time.Minute

// newScratch creates a temporary folder, which remove deletes. newScratch first deletes folders that killed collectors
// left behind. A folder is locked as long as its collector lives, and a lock ends with its process.
func newScratch() (dir string, remove func(), err error) {
	clearScratch(time.Now())
	if dir, err = os.MkdirTemp("", schemas.ScratchPrefix); err != nil {
		return "", nil, err
	}
	lock, err := schemas.TryLockPath(dir)
	if err != nil { // without locks, no folder is deleted either
		lock = nil
	}
	return dir, func() {
		os.RemoveAll(dir)
		lock.Unlock()
	}, nil
}

// clearScratch deletes the folders of collectors that no longer run.
func clearScratch(now time.Time) {
	left, err := filepath.Glob(filepath.Join(os.TempDir(), schemas.ScratchPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range left {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || now.Sub(info.ModTime()) < youngScratch {
			continue
		}
		lock, err := schemas.TryLockPath(dir) // fails for other users' folders too
		if err != nil {
			continue
		}
		os.RemoveAll(dir)
		lock.Unlock()
	}
}
