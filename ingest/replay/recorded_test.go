package replay_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/dpsight/dpsight/ingest/replay"
	"github.com/dpsight/dpsight/ingest/torchsnap"
	"github.com/dpsight/dpsight/schemas"
)

// testdata/record_mix.py made these recordings of torch's own allocator, on a phantom GPU with the memory that what
// gives.
var recordings = []struct {
	name string
	what string // the script's arguments, PYTORCH_CUDA_ALLOC_CONF and the device's memory

	maps, unmaps, pending, pools, oom bool // kinds of events that the recording must have, so that the test covers them
}{
	{name: "torch-2.11-pools", what: "2 pool graph oom; ; 8 GB", pending: true, pools: true, oom: true},
	{name: "torch-2.11-expandable", what: "4 pool graph oom train; expandable_segments:True; 8 GB", maps: true,
		unmaps: true, pending: true, pools: true, oom: true},
	{name: "torch-2.11-rounding", what: "6 oom pool; " +
		"roundup_power2_divisions:[1:8,4:2,16:4,>:1],max_split_size_mb:32; 8 GB", pending: true, pools: true,
		oom: true},
	{name: "torch-2.15-expandable-full", what: "10; expandable_segments:True; 1.5 GB, of which it runs out again and " +
		"again", maps: true, unmaps: true, pending: true},
	{name: "torch-2.15-split", what: "11 graph; garbage_collection_threshold:0.6,max_split_size_mb:64; 2.5 GB",
		pending: true, pools: true},
	{name: "torch-2.15-compile", what: "12 train compile; ; 8 GB", pending: true, pools: true},
}

// At each checkpoint, the replay equals all of torch's counters to the byte. At the end the replay has all blocks of
// torch's own list.
func TestRecordedAllocator(t *testing.T) {
	for _, rec := range recordings {
		t.Run(rec.name, func(t *testing.T) {
			s, err := torchsnap.ReadFile(filepath.Join("testdata", rec.name+".pickle.zst"), torchsnap.Options{})
			if err != nil {
				t.Fatal(err)
			}
			e, checkpoints := &s.Devices[0], counters(t, rec.name)
			var at []int64
			for _, c := range checkpoints {
				at = append(at, c.Seq)
			}
			res, err := replay.Run(e, settings(t, s), nil, rows(s, 0), at...)
			if err != nil {
				t.Fatal(err)
			}
			if res.Anomalies != (replay.Anomalies{}) {
				t.Error(res.Anomalies.Reason())
			}
			if !res.Final.Exact() || res.Final.Unchecked > 0 || res.Final.Blocks < 50 {
				t.Errorf("%+v", res.Final)
			}
			for _, c := range checkpoints {
				if d, err := res.Check(&c, 0, replay.Peaks{}); err != nil || !c.Agrees {
					t.Errorf("at event %d: residue %+v, %v", c.Seq, d, err)
				}
			}
			var pending, pools bool
			for _, a := range res.Allocs {
				pending = pending || a.FreeCompletedSeq > a.FreeRequestedSeq+10
				pools = pools || a.Pool != 0
			}
			has := map[schemas.Action]bool{}
			for _, a := range e.Action {
				has[a] = true
			}
			if len(checkpoints) < 10 || rec.maps != has[schemas.ActionSegmentMap] ||
				rec.unmaps != has[schemas.ActionSegmentUnmap] ||
				rec.oom != has[schemas.ActionOOM] || rec.pending != pending || rec.pools != pools {
				t.Errorf("the recording is not what it should be: %d checkpoints, actions %v, pending %v, pools %v",
					len(checkpoints), has, pending, pools)
			}
		})
	}
}

func counters(t *testing.T, name string) (out []schemas.Checkpoint) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".counters.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		Seq, Allocated, Reserved, Active, Requested int64
		AllocatedPeak                               int64 `json:"allocated_peak"`
		ReservedPeak                                int64 `json:"reserved_peak"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		out = append(out, schemas.Checkpoint{Seq: c.Seq, AllocatedBytes: c.Allocated,
			AllocatedPeakBytes: c.AllocatedPeak, ReservedBytes: c.Reserved,
			ReservedPeakBytes: c.ReservedPeak, ActiveBytes: c.Active, RequestedBytes: c.Requested})
	}
	return out
}

// If the replay lacks a recording's first 1,000 events, requested and reserved bytes are still exact at each
// checkpoint.
func TestRecordedAllocatorLate(t *testing.T) {
	for _, rec := range recordings {
		s, err := torchsnap.ReadFile(filepath.Join("testdata", rec.name+".pickle.zst"), torchsnap.Options{})
		if err != nil {
			t.Fatal(err)
		}
		const cut = 1000
		e := s.Devices[0]
		late := e.Part(cut, e.Len())
		final := rows(s, 0)
		for i := range final {
			final[i].Seq -= cut
		}
		var at []int64
		var want []schemas.Checkpoint
		for _, c := range counters(t, rec.name) {
			if c.Seq -= cut; c.Seq >= 0 {
				at = append(at, c.Seq)
				want = append(want, c)
			}
		}
		res, err := replay.Run(&late, settings(t, s), nil, final, at...)
		if err != nil {
			t.Fatal(err)
		}
		if res.Anomalies.Lost() > 0 || !res.Anomalies.Late() || len(want) < 5 {
			t.Errorf("%s: %d checkpoints; %s", rec.name, len(want), res.Anomalies.Reason())
		}
		for i, c := range res.Checkpoints {
			w := &want[i]
			low := w.AllocatedBytes - (res.Anomalies.LateSlack+res.Anomalies.UntracedBlocks)<<20
			if c.Requested != w.RequestedBytes || c.Reserved != w.ReservedBytes || c.Allocated > w.AllocatedBytes ||
				c.Allocated < low {
				t.Errorf("%s: after event %d: %+v, want %+v", rec.name, c.Seq, c, w)
			}
		}
	}
}
