package store

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"testing"
)

// A table of the index has the latest document of each folder, after any additions and removals. The table keeps the
// documents in few chunks.
func TestChunksHaveWhatWasKept(t *testing.T) {
	x, err := openIndexAt(filepath.Join(t.TempDir(), IndexFile))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	rnd := rand.New(rand.NewPCG(31, 3))
	want := map[string]entry{}
	for round := range 30 {
		fresh := map[string]entry{}
		for range rnd.IntN(400) {
			folder := fmt.Sprintf("run-%04d", rnd.IntN(4000))
			fresh[folder] = entry{fmt.Sprint("stamp", round), fmt.Appendf(nil, "%d of %s", round, folder)}
			want[folder] = fresh[folder]
		}
		var gone []string
		for folder := range want {
			if _, ok := fresh[folder]; !ok && rnd.IntN(10) == 0 {
				gone = append(gone, folder)
				delete(want, folder)
			}
		}
		x.keep(tableRows, fresh, gone)
		if got := x.read(tableRows); !reflect.DeepEqual(got, want) {
			t.Fatalf("round %d: %d documents, not the %d that were kept", round, len(got), len(want))
		}
	}
	var chunks int
	if err := x.db.QueryRow("SELECT count(*) FROM " + tableRows).Scan(&chunks); err != nil ||
		chunks > 1+2*len(want)/chunkRuns {
		t.Errorf("%d documents are in %d chunks (%v)", len(want), chunks, err)
	}
	if x.broken {
		t.Error("the index counts as broken")
	}
}

// If a chunk is cut off, or a byte of it is wrong, its checksum does not match, and none of its documents is read.
func TestChunksThatAreDamagedCountAsNone(t *testing.T) {
	b := appendChunk(nil, "run-1", entry{"stamp", []byte("data")})
	sum := checksum("run-1", b)
	for i := range b {
		spoilt := append([]byte(nil), b...)
		spoilt[i] ^= 4
		if checksum("run-1", spoilt) == sum || checksum("run-1", b[:i]) == sum {
			t.Errorf("byte %d can change", i)
		}
		readChunk(spoilt, into(map[string]entry{})) // reading a damaged chunk must not panic
		readChunk(b[:i], into(map[string]entry{}))
	}
	if checksum("run-2", b) == sum {
		t.Error("a chunk can stand in another's place")
	}
}
