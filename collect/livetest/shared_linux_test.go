package livetest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// modelBytes is the size of all parameters of world.py's model. Below, weightBytes has the size of each weight, and
// gatheredBytes the size when FSDP2 has gathered it over two ranks, with an even number of rows.
const modelBytes = 4 * (64*512 + 512 + 512*2048 + 2048 + 2048*7 + 7)

var (
	weightBytes   = map[string]int64{"0.weight": 4 * 64 * 512, "2.weight": 4 * 512 * 2048, "4.weight": 4 * 2048 * 7}
	gatheredBytes = map[string]int64{"0.weight": 4 * 64 * 512, "2.weight": 4 * 512 * 2048, "4.weight": 4 * 2048 * 8}
)

// The flat buckets in which DDP averages gradients have the category gradients for their whole lives: the first
// buckets, and the buckets that DDP makes in the second forward.
func TestBucketsAreGradients(t *testing.T) {
	r := world(t, 2, "1", 8, testkit.Python(t), "ddp")
	steps, err := schemas.Steps.Read(r.dir)
	if err != nil || len(steps) != 4 {
		t.Fatalf("%d steps, %v", len(steps), err)
	}
	for _, s := range steps {
		for when, seq := range map[string]int64{"begins": s.BeginSeq, "ends": s.EndSeq} {
			bytes, blocks := int64(0), 0
			for _, b := range countedAt(t, r.dir, seq) {
				if b.block.RequestedBytes > 1<<10 && b.category == schemas.Other {
					t.Errorf("step %d %s: %d bytes, born in %s, are other", s.Step, when, b.block.RequestedBytes,
						b.block.Phase)
				}
				// DDP also has a small tensor that notes which parameters were used
				if b.name == "DDP bucket" && b.block.RequestedBytes > 1<<10 {
					bytes, blocks = bytes+b.block.RequestedBytes, blocks+1
					if b.category != schemas.Gradients || b.evidence != schemas.Lifetime {
						t.Errorf("step %d %s: a bucket of %d bytes is %s by %s", s.Step, when, b.block.RequestedBytes,
							b.category, b.evidence)
					}
				}
			}
			if bytes != modelBytes || blocks > 3 {
				t.Errorf("step %d %s: %d bytes in %d buckets, of %d", s.Step, when, bytes, blocks, modelBytes)
			}
		}
	}
}

// A tensor into which FSDP2 gathers a weight has the category parameters and the weight's name as long as it lives. A
// tensor that FSDP2 reduces and scatters has the category gradients.
func TestGatheredAreParameters(t *testing.T) {
	testkit.Rest(t)
	r := world(t, 2, "1", 8, testkit.Python(t), "fsdp")
	allocations, err := schemas.Allocations.Read(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	owners, err := schemas.Owners.Read(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	block := map[int64]*schemas.Allocation{}
	for i := range allocations {
		block[allocations[i].AllocID] = &allocations[i]
	}
	whole, seen := map[int64]bool{}, map[string]int{}
	for _, o := range owners {
		a := block[o.AllocID]
		passes := a.FreeRequestedSeq > 0 && a.RequestedBytes > 0
		switch {
		case o.Category == schemas.Parameters && passes && a.RequestedBytes == gatheredBytes[o.Name] &&
			o.BeginSeq == a.AllocSeq && o.EndSeq == a.FreeRequestedSeq,
			o.Category == schemas.Gradients && passes && a.RequestedBytes == weightBytes[o.Name]:
			whole[o.AllocID] = true
			seen[fmt.Sprintf("%s %s", o.Name, o.Category)]++
		case o.Category == schemas.Parameters && strings.HasSuffix(o.Name, ".gathered"),
			o.Category == schemas.Gradients && strings.HasSuffix(o.Name, ".scattered"):
			seen[o.Category]++
		}
	}
	for name := range weightBytes {
		for _, category := range []schemas.Category{schemas.Parameters, schemas.Gradients} {
			if n := seen[fmt.Sprintf("%s %s", name, category)]; n < 3 {
				t.Errorf("%s is seen whole %d times among the %s", name, n, category)
			}
		}
	}
	if seen[schemas.Parameters] < 6 || seen[schemas.Gradients] < 3 {
		t.Errorf("flat tensors: %v", seen)
	}
	for i := range allocations {
		a := &allocations[i]
		if a.RequestedBytes == weightBytes["2.weight"] && strings.HasPrefix(a.Phase, schemas.PhaseBackward) &&
			!whole[a.AllocID] {
			t.Errorf("%d bytes of step %d, born in %s, are neither a parameter nor a gradient", a.RequestedBytes,
				a.Step, a.Phase)
		}
	}
}
