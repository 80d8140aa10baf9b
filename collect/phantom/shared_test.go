package phantom

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
)

// Processes on one phantom device share its memory: both what they see as free and what they can request. The context
// of a second process takes memory too. What a killed process held is free again. Processes that are given another
// shared page have other devices.
func TestProcessesShareADevice(t *testing.T) {
	testkit.Rest(t)
	library := testLibrary(t)
	library.MemoryBytes = 2 << 30
	library.Shared = filepath.Join(t.TempDir(), "devices")
	shared, err := NewShared(library.Shared, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	var got struct{ Alone, Beside, Elsewhere, Failed, After []int64 }
	runScript(t, library, &got, "shared.py", nil)
	context := library.Profile.Properties["context_bytes"]
	held, usable := int64(512<<20), library.MemoryBytes
	if !slices.Equal(got.Alone, []int64{usable - held, 1}) ||
		!slices.Equal(got.Beside, []int64{usable - 2*held - context, 1}) ||
		!slices.Equal(got.Elsewhere, []int64{usable - held, 1}) ||
		!slices.Equal(got.Failed, []int64{usable - held - context, 0}) ||
		!slices.Equal(got.After, []int64{usable - 3*held, 1}) {
		t.Errorf("%+v", got)
	}
	uses, err := shared.Uses()
	want := []Use{{0, 0, 2, max(2*held, 3*held), max(2*held+context, 3*held)}, {1, 0, 1, held, held}}
	if err != nil || !slices.Equal(uses, want) {
		t.Errorf("uses %+v, want %+v, %v", uses, want, err)
	}
}
