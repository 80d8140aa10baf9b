package collect

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// The collector keeps disk space for the end of a run and for the manifest. The collector first releases the space for
// the end. The collector keeps the space for the manifest until it writes the manifest, since the disk may fill while
// the collector seals the journal.
func TestRoomIsKeptForTheManifest(t *testing.T) {
	dir := t.TempDir()
	kept := func() (bytes int64) {
		files, _ := filepath.Glob(filepath.Join(dir, "*"+schemas.PartialSuffix))
		for _, file := range files {
			st, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			bytes += st.Size()
		}
		return bytes
	}
	release, last, err := reserve(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := kept(); got != reserveRoom+manifestRoom {
		t.Errorf("%d bytes are kept", got)
	}
	release()
	if got := kept(); got != manifestRoom {
		t.Errorf("%d bytes are kept for the manifest", got)
	}
	last()
	if got := kept(); got != 0 {
		t.Errorf("%d bytes are kept of a run that has ended", got)
	}
}
