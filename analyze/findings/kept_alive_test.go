package findings

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/schemas"
)

// A life is a block of a made-up run with its owner.
type life struct {
	bytes    int64
	from, to int64 // events; to = 0: to the end
	category schemas.Category
	evidence string
	name     string
	module   int64
}

// livesOf is a run of three steps of 100 events each, after 100 of set-up.
func livesOf(lives ...life) schemas.Tables {
	in := fixture.PeakOf()
	in.Modules = []schemas.Module{{ID: 1, Path: "Net#1.0"}, {ID: 2, Path: "Net#2.0"}}
	in.Steps = nil
	for i := range int64(3) {
		in.Steps = append(in.Steps, schemas.Step{Step: i, Instrumented: true, Recorded: true, BeginSeq: 100 * (i + 1),
			EndSeq: 100 * (i + 2)})
	}
	slices.SortStableFunc(lives, func(a, b life) int { return int(a.from - b.from) })
	for i, x := range lives {
		id := int64(i + 1)
		in.Allocations = append(in.Allocations, schemas.Allocation{AllocID: id, Address: uint64(id) << 20,
			RequestedBytes: x.bytes, BlockBytes: x.bytes, AllocSeq: x.from, FreeRequestedSeq: x.to, Module: x.module})
		in.Owners = append(in.Owners, schemas.Owner{AllocID: id, Category: x.category, BeginSeq: x.from, EndSeq: x.to,
			Evidence: x.evidence, Name: x.name, Module: x.module})
	}
	peak, at := int64(0), int64(0)
	for seq := int64(1); seq <= 400; seq++ {
		var now int64
		for i := range in.Allocations {
			if in.Allocations[i].LiveAt(seq) {
				now += in.Allocations[i].BlockBytes
			}
		}
		if now > peak {
			peak, at = now, seq
		}
	}
	v := &in.Report.Devices[0]
	v.Events, v.PeakSeq, v.InstrumentedPeakSeq, v.PeakAllocatedBytes = 400, at, &at, peak
	return in
}

// found checks that a run has the finding, with its size and what it saves.
func found(t *testing.T, id string, bytes, saves int64, known Confidence, lives ...life) *Finding {
	t.Helper()
	f := theFinding(t, inspected(livesOf(lives...)), id)
	if f == nil || *f.Bytes != bytes || f.SavesBytes == nil || *f.SavesBytes != saves || f.Confidence != known {
		t.Fatalf("%s: %+v", id, f)
	}
	return f
}

// absent checks that a run has not.
func absent(t *testing.T, id, why string, lives ...life) {
	t.Helper()
	if f := theFinding(t, inspected(livesOf(lives...)), id); f != nil {
		t.Errorf("%s, %s: %+v", id, why, f)
	}
}

var (
	weights    = life{bytes: 800, from: 1, category: schemas.Parameters, evidence: schemas.Tagged, name: "w"}
	activation = life{bytes: 200, from: 120, to: 190, category: schemas.Activations, evidence: schemas.Tagged}
)

// at moves a life.
func (x life) at(from, to int64) life { x.from, x.to = from, to; return x }

func (x life) named(name string, module int64) life { x.name, x.module = name, module; return x }

func TestEarlierGraphIsFound(t *testing.T) {
	f := found(t, EarlierGraph, 200, 200, AtLeast, weights, activation.at(120, 290), activation.at(220, 280))
	if factsOf[EarlierGraphFacts](t, f).Blocks != 1 {
		t.Errorf("%+v", f.Facts)
	}
	absent(t, EarlierGraph, "each step frees its own", weights, activation, activation.at(220, 280))
	small := activation.at(120, 290)
	small.bytes = 50
	absent(t, EarlierGraph, "below 5 %", weights, small, activation.at(220, 280))
}

func TestAutocastCacheIsFound(t *testing.T) {
	cast := life{bytes: 100, category: schemas.AutocastCache, evidence: schemas.Lifetime}
	f := found(t, AutocastCache, 300, 200, Replayed, weights, cast.at(110, 190), cast.at(120, 191), cast.at(130, 192))
	if factsOf[AutocastCacheFacts](t, f).Casts != 3 {
		t.Errorf("%+v", f.Facts)
	}
	absent(t, AutocastCache, "below 5 %", weights, life{bytes: 40, from: 110, to: 190, category: schemas.AutocastCache,
		evidence: schemas.Lifetime})
}

func TestBucketCopiesAreFound(t *testing.T) {
	gradient := life{bytes: 100, category: schemas.Gradients, evidence: schemas.Tagged, name: "w"}
	bucket := life{bytes: 200, from: 90, category: schemas.Gradients, evidence: schemas.Lifetime, name: "DDP bucket"}
	f := found(t, BucketCopies, 200, 200, Replayed, weights, bucket, gradient.at(150, 190), gradient.at(160, 190))
	if factsOf[BucketCopiesFacts](t, f).BucketBytes != 200 {
		t.Errorf("%+v", f.Facts)
	}
	absent(t, BucketCopies, "no bucket", weights, gradient.at(150, 190))
	// Where .grad is a view, its tag lies on the bucket.
	in := livesOf(weights, bucket)
	in.Owners = append(in.Owners, schemas.Owner{AllocID: 2, Category: schemas.Gradients, BeginSeq: 150,
		Evidence: schemas.Tagged, Name: "w"})
	if f := theFinding(t, inspected(in), BucketCopies); f != nil {
		t.Errorf("views: %+v", f)
	}
}

func TestIdleModelsAreFound(t *testing.T) {
	model := life{bytes: 300, from: 1, category: schemas.Parameters, evidence: schemas.Tagged}
	run := life{bytes: 100, category: schemas.ActivationGradients, evidence: schemas.Lifetime}
	first, second := model.named("Net#1.0.weight", 0), model.named("Net#2.0.weight", 0)
	f := found(t, IdleModels, 300, 300, AtLeast, first, second, run.at(120, 190).named("", 1),
		run.at(320, 390).named("", 2))
	if x := factsOf[IdleModelsFacts](t, f); !slices.Equal(x.Idle, []NamedBytes{{"Net#2", 300}}) {
		t.Errorf("%+v", x)
	}
	absent(t, IdleModels, "both run to the end", first, second, run.at(120, 190).named("", 1),
		run.at(130, 190).named("", 2), run.at(320, 390).named("", 1), run.at(330, 390).named("", 2))
	absent(t, IdleModels, "one never runs, as an average of weights", first, second, run.at(120, 190).named("", 1))
	// Two models of one name, the second of which is called otherwise when it runs: neither is thought idle while the
	// other runs.
	absent(t, IdleModels, "a name that two have", first, first, run.at(120, 190).named("", 1),
		run.at(320, 390).named("", 2))
}
