package collect

import (
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/dpsight/dpsight/schemas"
)

// clearScratch removes the temporary folders that killed collectors left. clearScratch keeps folders that are in use,
// that are young, or that other programs made.
func TestScratchOfKilledCollectorsIsCleared(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	mine, remove, err := newScratch()
	if err != nil {
		t.Fatal(err)
	}
	folder := func(prefix string) string {
		dir, err := os.MkdirTemp("", prefix)
		if err == nil {
			err = os.WriteFile(dir+"/file", nil, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	left, foreign := folder(schemas.ScratchPrefix), folder("other-")
	there := func(dir string) bool {
		_, err := os.Stat(dir)
		return !errors.Is(err, fs.ErrNotExist)
	}
	clearScratch(time.Now())
	if !there(left) {
		t.Error("a folder that was only just made is cleared")
	}
	clearScratch(time.Now().Add(2 * youngScratch))
	if there(left) || !there(foreign) || !there(mine) {
		t.Errorf("the left one is there: %t, another program's: %t, the one in use: %t", there(left), there(foreign),
			there(mine))
	}
	if remove(); there(mine) {
		t.Error("the folder stays after its run")
	}
}
