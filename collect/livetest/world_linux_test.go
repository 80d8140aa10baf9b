package livetest_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// A rankPeak has the peaks of a rank on its device: allocated and reserved.
type rankPeak struct {
	rank, device        int32
	allocated, reserved int64
}

func peaksOf(r *recorded) (peaks []rankPeak) {
	for _, d := range r.report.Devices {
		peaks = append(peaks, rankPeak{d.Rank, d.Device, d.PeakAllocatedBytes, d.PeakReservedBytes})
	}
	slices.SortFunc(peaks, func(a, b rankPeak) int { return int(a.rank - b.rank) })
	return peaks
}

func world(t *testing.T, size int, ranks string, perNode int, python, kind string) *recorded {
	t.Helper()
	w, err := collect.WorldOf(&size, ranks, perNode)
	if err != nil {
		t.Fatal(err)
	}
	r := recordAs(t, environment(), func(e *collect.Experiment) { e.World = w }, python, script(t, "world.py"), kind)
	if r.manifest.Status != schemas.StatusOK {
		t.Fatalf("status %s (%s)\n%s", r.manifest.Status, r.manifest.Reason, r.stderr)
	}
	return r
}

// Two ranks that torchrun starts as real processes have the same peaks as when dpsight simulates each rank alone. The
// real processes use torchrun's own rendezvous and gloo.
func TestWorldIsThatOfTorchrun(t *testing.T) {
	python := testkit.Python(t)
	kinds := []string{"fsdp", "objects"}
	if long() {
		kinds = append(kinds, "ddp", "gloo", "mesh", "private", "ghost", "fgc")
	}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			testkit.Part(t, kind != "fsdp")
			t.Parallel()
			takeSlot(t)
			real := record(t, environment("PHANTOM_DEVICES=2"), filepath.Join(filepath.Dir(python), "torchrun"),
				"--standalone", "--nproc-per-node", "2", script(t, "world.py"), kind)
			if real.manifest.Status != schemas.StatusOK {
				t.Fatalf("torchrun: status %s (%s)\n%s", real.manifest.Status, real.manifest.Reason, real.stderr)
			}
			played := world(t, 2, "0,1", 8, python, kind)
			got, want := peaksOf(played), peaksOf(real)
			if len(want) != 2 || want[1].device != 1 || want[0].allocated < 8<<20 || !slices.Equal(got, want) {
				t.Errorf("played %+v, by torchrun %+v", got, want)
			}
			// Under torchrun a rank receives what another rank sends. A simulated rank reads a copy of its own object
			// instead, and the prediction lists such reads.
			if p, r := played.report.Prediction.CopiedReads, real.report.Prediction.CopiedReads; kind == "objects" &&
				(len(p) == 0 || len(r) > 0) {
				t.Errorf("taken for all ranks': played %v, by torchrun %v", p, r)
			}
			if len(played.manifest.Warnings) > 0 {
				t.Errorf("warnings: %q", played.manifest.Warnings)
			}
		})
	}
}

// If both ranks under torchrun use the first device, the manifest has the sum of what they hold there.
func TestRanksShareADevice(t *testing.T) {
	testkit.Rest(t)
	python := testkit.Python(t)
	takeSlot(t)
	r := record(t, environment(), filepath.Join(filepath.Dir(python), "torchrun"), "--standalone", "--nproc-per-node",
		"2", script(t, "world.py"), "same")
	context := int64(552402944)
	want := []schemas.DeviceUse{{Device: 0, Processes: 2, ReservedBytes: 128 << 20, TakenBytes: 128<<20 + context}}
	if r.manifest.Status != schemas.StatusOK || !slices.Equal(r.manifest.Phantom.Devices, want) {
		t.Errorf("status %s (%s), devices %+v\n%s", r.manifest.Status, r.manifest.Reason, r.manifest.Phantom.Devices,
			r.stderr)
	}
}

// The more ranks share a model by FSDP2, the less each rank holds. Of eight ranks, each holds an eighth of the
// parameters, gradients and Adam's moments of 1.1 million elements. Of two ranks, each holds a half.
func TestWorldShares(t *testing.T) {
	python := testkit.Python(t)
	if !long() {
		t.Skip("DPSIGHT_TEST_LONG is unset")
	}
	takeSlot(t)
	few, many := peaksOf(world(t, 2, "1", 8, python, "fsdp")), peaksOf(world(t, 8, "7", 4, python, "fsdp"))
	if len(few) != 1 || len(many) != 1 || many[0].rank != 7 || many[0].device != 3 ||
		few[0].allocated-many[0].allocated < 4<<20 {
		t.Errorf("of two %+v, of eight %+v", few, many)
	}
}

// A simulated rank of a world of 1,024 never waits for the other ranks. Each collective returns what it would return
// if all ranks had the same values as this rank. The first and the last rank have the same peak.
func TestWorldOfAThousand(t *testing.T) {
	python := testkit.Python(t)
	if !long() {
		t.Skip("DPSIGHT_TEST_LONG is unset")
	}
	takeSlot(t)
	first, last := peaksOf(world(t, 1024, "0", 8, python, "objects")),
		peaksOf(world(t, 1024, "1023", 8, python, "objects"))
	if len(first) != 1 || len(last) != 1 || last[0].rank != 1023 || last[0].device != 7 ||
		first[0].allocated != last[0].allocated {
		t.Errorf("the first %+v, the last %+v", first, last)
	}
}

// FSDP2 divides a model's rows among 1,024 ranks: each rank gets two of the largest layer's 2,048 rows, and one or no
// row of the layers with 512 and with 7 rows. The last rank lacks a row of 64 elements, a row of 2,048 elements and
// their biases, which the first rank has. For these rows and biases the first rank also has gradients and optimizer
// state. The first and the last rank pad each gathered or reduced layer to at least one row a rank: 8 MiB for the layer
// of 7 rows.
func TestWorldOfAThousandShares(t *testing.T) {
	python := testkit.Python(t)
	if !long() {
		t.Skip("DPSIGHT_TEST_LONG is unset")
	}
	takeSlot(t)
	p := peaksOf(world(t, 1024, "0,1023", 8, python, "fsdp"))
	if len(p) != 2 || p[1].rank != 1023 || p[1].device != 7 {
		t.Fatalf("%+v", p)
	}
	if more := p[0].allocated - p[1].allocated; more < 8<<10 || more > 64<<10 {
		t.Errorf("%+v: the first rank holds %d bytes more than the last", p, more)
	}
}

// With Opacus's two-pass methods every rank holds the whole model, however many ranks there are. Ghost clipping
// computes the norms of these layers from Gram matrices. Fast gradient clipping computes them from the per-sample
// gradients of one layer at a time, which take 32 times 4 MiB for the largest layer.
func TestWorldOfAThousandPrivately(t *testing.T) {
	python := testkit.Python(t)
	if !long() {
		t.Skip("DPSIGHT_TEST_LONG is unset")
	}
	takeSlot(t)
	highest := map[string]int64{}
	for _, kind := range []string{"ghost", "fgc"} {
		few, many := peaksOf(world(t, 2, "1", 8, python, kind)), peaksOf(world(t, 1024, "1023", 8, python, kind))
		if len(few) != 1 || len(many) != 1 || many[0].rank != 1023 || many[0].allocated != few[0].allocated {
			t.Errorf("%s: of two %+v, of 1,024 %+v", kind, few, many)
		}
		highest[kind] = many[0].allocated
	}
	if more := highest["fgc"] - highest["ghost"]; more < 100<<20 {
		t.Errorf("fast gradient clipping takes %d bytes more than ghost clipping", more)
	}
}

// Sending a Python object to another rank takes as much device memory in a simulated world as with torch's own
// functions under torchrun. The script checks the size for each object.
func TestWorldSizesOfObjects(t *testing.T) {
	testkit.Rest(t)
	python := testkit.Python(t)
	takeSlot(t)
	real := record(t, environment("PHANTOM_DEVICES=2"), filepath.Join(filepath.Dir(python), "torchrun"), "--standalone",
		"--nproc-per-node", "2", script(t, "world.py"), "sized")
	if real.manifest.Status != schemas.StatusOK {
		t.Errorf("torchrun: status %s (%s)\n%s", real.manifest.Status, real.manifest.Reason, real.stderr)
	}
	world(t, 2, "0,1", 8, python, "sized")
}

// In a simulated world, a full device and an object that cannot be sent raise the same errors as in a real one,
// although no other rank exists.
func TestWorldErrors(t *testing.T) {
	testkit.Rest(t)
	world(t, 2, "1", 8, testkit.Python(t), "errors")
}

func TestWorldWithoutAGroup(t *testing.T) {
	testkit.Rest(t)
	r := world(t, 2, "1", 8, testkit.Python(t), "none")
	if w := r.manifest.Warnings; len(w) != 1 || !strings.HasPrefix(w[0], "rank 1 joined no process group: ") {
		t.Errorf("warnings: %q", w)
	}
}
