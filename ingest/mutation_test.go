package ingest

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/ingest/torchsnap"
	"github.com/dpsight/dpsight/schemas"
)

// mutations is the number of damaged versions of each small snapshot that the test reads. Reading a recording takes a
// hundred times as long. The test reads ofRecordings damaged versions of each recording, and ofFew in `make test`.
const (
	mutations    = 1000
	ofRecordings = 200
	ofFew        = 20
)

// plainFile returns the uncompressed content of a file.
func plainFile(t *testing.T, path string) []byte {
	t.Helper()
	in, err := openInput(path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r, err := in.entries[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// verdicts reads a pickled snapshot and returns the verdict for each device. verdicts returns an error if dpsight
// refuses the snapshot.
func verdicts(p []byte) ([]schemas.DeviceVerdict, error) {
	s, err := torchsnap.ReadBytes(p, torchsnap.Options{})
	if err != nil {
		return nil, err
	}
	settings, err := replaySettings(s.Settings)
	if err != nil {
		return nil, err
	}
	var out []schemas.DeviceVerdict
	for d := range deviceCount(s) {
		rec := snapshotRecording(s, int32(d), settings)
		if rec == nil {
			continue
		}
		_, v, err := rec.replayed()
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// mutated damages a file in one place, as a bad disk, a cut transfer or a careless editor does.
func mutated(rnd *rand.Rand, p []byte) []byte {
	at := rnd.IntN(len(p))
	n := min(1+rnd.IntN(64), len(p)-at)
	switch rnd.IntN(6) {
	case 0:
		return slices.Clone(p[:at])
	case 1: // bytes are lost
		return slices.Concat(p[:at], p[at+n:])
	case 2: // bytes are repeated
		return slices.Concat(p[:at+n], p[at:])
	case 3: // bytes from another place overwrite these bytes
		from := rnd.IntN(len(p) - n + 1)
		return slices.Concat(p[:at], p[from:from+n], p[at+n:])
	case 4:
		out := slices.Clone(p)
		out[at] ^= 1 << rnd.IntN(8)
		return out
	}
	out := slices.Clone(p)
	out[at] = byte(rnd.Uint32())
	return out
}

// TestMutationsAreNeverExactAndWrong damages snapshots that torch wrote and whose verdict is exact. If a damaged
// snapshot still has the verdict exact, its peak must equal the true peak.
func TestMutationsAreNeverExactAndWrong(t *testing.T) {
	paths, _ := filepath.Glob("torchsnap/testdata/eras/*.pickle*")
	recordings, _ := filepath.Glob("torchsnap/testdata/*.pickle.zst")
	sound, refused, told := 0, 0, 0
	for _, path := range append(paths, recordings...) {
		p, share := plainFile(t, path), mutations
		if slices.Contains(recordings, path) {
			if share = ofFew; testkit.WithRest() {
				share = ofRecordings
			}
		}
		truth, err := verdicts(p)
		if err != nil || len(truth) == 0 ||
			slices.ContainsFunc(truth, func(v schemas.DeviceVerdict) bool { return v.Verdict != schemas.Exact }) {
			continue
		}
		sound++
		rnd := rand.New(rand.NewPCG(1, uint64(len(p))))
		for i := range share {
			damaged := mutated(rnd, p)
			if bytes.Equal(damaged, p) {
				continue
			}
			found, err := verdicts(damaged)
			if err != nil {
				refused++
				continue
			}
			for _, v := range found {
				if v.Verdict != schemas.Exact {
					told++
					continue
				}
				same := func(w schemas.DeviceVerdict) bool {
					return w.Device == v.Device && w.PeakAllocatedBytes == v.PeakAllocatedBytes
				}
				if !slices.ContainsFunc(truth, same) {
					t.Errorf("%s, mutation %d: exact with a peak of %d bytes; truth %+v", filepath.Base(path), i,
						v.PeakAllocatedBytes, truth)
				}
			}
		}
	}
	if sound < 6 || refused == 0 || told == 0 {
		t.Errorf("%d sound files, %d mutations refused, %d called other than exact: the test tries too little", sound,
			refused, told)
	}
	t.Logf("%d sound files, %d mutations refused, %d devices called other than exact", sound, refused, told)
}

// Blocks older than the events appear only in the allocator's list, so a list that lost such blocks still agrees with
// the events. Only the totals of the blocks' segment show the loss. torch writes a trace for each device. If a damaged
// file attributes a segment to another device, the missing trace of that device shows the damage.
func TestLostBlocksAreSeen(t *testing.T) {
	segment := func(address int) string {
		return fmt.Sprintf("}(U\x06deviceI0\nU\x07addressI%d\nU\x0atotal_sizeI512\nU\x0eallocated_sizeI512\n"+
			"U\x0csegment_typeU\x05smallU\x06blocks](}(U\x05stateU\x10active_allocatedU\x04sizeI512\n"+
			"U\x0erequested_sizeI512\nueu", address)
	}
	sound := "\x80\x02}(U\x08segments](" + segment(65536) + segment(131072) + "eU\x0ddevice_traces](](}(U\x06actionU" +
		"\x05allocU\x04addrI65536\nU\x04sizeI512\nU\x06streamI0\nueeu."
	at := strings.LastIndex(sound, "blocks")
	lost := sound[:at] + "Blocks" + sound[at+len("blocks"):]
	moved := strings.Replace(sound, "deviceI0\nU\x07addressI131072", "deviceI4\nU\x07addressI131072", 1)
	for _, c := range []struct {
		file, verdict, reason string
		peak                  int64
	}{
		{sound, schemas.Exact, "alive before recording began", 1024},
		{lost, schemas.Lossy, "blocks contradict the totals of 1 segment", 512},
		{moved, schemas.Lossy, "1 segment of a device that the file has no trace of", 512},
	} {
		v, err := verdicts([]byte(c.file))
		if err != nil || len(v) == 0 || v[0].Verdict != c.verdict || v[0].PeakAllocatedBytes != c.peak ||
			!strings.Contains(v[0].Reason, c.reason) {
			t.Errorf("%+v, %v; want %+v", v, err, c)
		}
	}
}
