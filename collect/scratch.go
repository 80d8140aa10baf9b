package collect

import (
	"os"
	"path/filepath"
	"time"

	"github.com/dpsight/dpsight/schemas"
)

// youngScratch is how old a folder may be that is not locked yet.
const youngScratch = time.Minute

// newScratch makes a temporary folder, which remove removes. newScratch first removes folders that killed collectors
// left: a folder is locked as long as its collector lives, and a lock ends with its process.
func newScratch() (dir string, remove func(), err error) {
	clearScratch(time.Now())
	if dir, err = os.MkdirTemp("", schemas.ScratchPrefix); err != nil {
		return "", nil, err
	}
	lock, err := schemas.TryLockPath(dir)
	if err != nil { // if nothing can be locked, nothing is cleared either
		lock = nil
	}
	return dir, func() {
		os.RemoveAll(dir)
		lock.Unlock()
	}, nil
}

// clearScratch removes the folders of collectors that are gone.
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
		lock, err := schemas.TryLockPath(dir) // fails for the folders of other users, too
		if err != nil {
			continue
		}
		os.RemoveAll(dir)
		lock.Unlock()
	}
}
