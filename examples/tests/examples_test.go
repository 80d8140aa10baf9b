// Package examples_test checks dpsight's claims about the recorded runs in examples.
package examples_test

import (
	"cmp"
	"iter"
	"math"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/collect/suite"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/ingest/ingesttest"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

const (
	headline       = "headline"
	collectorAlone = "collector-alone" // the experiment only sleeps
)

// suites lists the stores whose runs a suite of the same name made. If that suite is not built in, suiteFiles has its
// file.
var (
	suites     = []string{headline, "headline-batch", "trainers", "quick", "seq", "mlp", plain, "stacks"}
	suiteFiles = map[string]string{"mlp": "suites/mlp.yaml", plain: "suites/scripts.yaml",
		"stacks": "suites/stacks.yaml", "claims": "suites/claims.yaml"}
)

const plain = "plain" // no DP examples: scripts that know nothing of dpsight

// planOf returns the suite that made a store.
func planOf(t testing.TB, folder string) *suite.Suite {
	t.Helper()
	plan, err := suite.Load(cmp.Or(suiteFiles[folder], folder))
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// TestMain runs the tests in the folder examples, which has the recordings, suites and scripts.
func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil {
		panic(err)
	}
	code := m.Run()
	ingesttest.Remove()
	os.Exit(code)
}

// collectorShare is the largest share of a core that the collector may take, when it samples every 10 ms.
const collectorShare = 0.02

// example is one recorded run.
type example struct {
	store.Run
	in schemas.Tables
}

func (e *example) method() string { return e.Manifest.Params["method"].(string) }

// recorded loads the runs of a store that the suite headline made: runs with events by method, and bare runs by
// method.
func recorded(t testing.TB, folder string) (full, bare map[string]*example) {
	t.Helper()
	full, bare = map[string]*example{}, map[string]*example{}
	for e := range runsOf(t, folder) {
		if e.Manifest.Bare {
			bare[e.method()] = e
		} else {
			full[e.method()] = e
		}
	}
	for _, m := range []string{"vanilla", "dpsgd", "ghost"} {
		if full[m] == nil || bare[m] == nil {
			t.Fatalf("method %s lacks its full or its bare run", m)
		}
	}
	return full, bare
}

// runsOf loads the runs of a store, one after another.
func runsOf(t testing.TB, folder string) iter.Seq[*example] {
	t.Helper()
	runs, damaged, err := store.Open(ingesttest.Store(t, folder)).Runs()
	if err != nil || len(damaged) > 0 || len(runs) == 0 {
		t.Fatalf("%s: %d runs, damaged %v, %v", folder, len(runs), damaged, err)
	}
	return func(yield func(*example) bool) {
		for _, r := range runs {
			tab, err := store.Load(r, findings.Tables)
			if err != nil {
				t.Fatal(err)
			}
			if !yield(&example{r, *tab}) {
				return
			}
		}
	}
}

// recordings yields all runs on a real GPU with allocator events, from every store, so that no run is left out.
func recordings(t testing.TB) iter.Seq2[string, *example] {
	return func(yield func(string, *example) bool) {
		for _, folder := range storeFolders(t) {
			if !anyFull(t, folder) {
				continue // the store has only runs without events
			}
			for e := range runsOf(t, folder) {
				if e.Manifest.Bare {
					continue
				}
				if len(e.in.Allocations) == 0 {
					t.Errorf("%s/%s has no allocator events", folder, e.Manifest.Name)
				} else if !yield(folder+"/"+e.Manifest.Name, e) {
					return
				}
			}
		}
	}
}

// anyFull reports whether a store has runs with allocator events. Bare runs have none, and neither has the run in
// collector-alone.
func anyFull(t testing.TB, folder string) bool {
	for _, m := range manifestsOf(t, folder) {
		if !m.Bare && folder != collectorAlone {
			return true
		}
	}
	return false
}

func device(t testing.TB, e *example) schemas.DeviceVerdict {
	t.Helper()
	if n := len(e.in.Report.Devices); n != 1 {
		t.Fatalf("%s: %d devices", e.ID, n)
	}
	return e.in.Report.Devices[0]
}

// All recordings with events come from a real GPU and lack no event, and replay agrees with torch's own counters to the
// byte.
func TestConservation(t *testing.T) {
	for m, e := range recordings(t) {
		if e.Manifest.Source != schemas.Measured || e.Manifest.Status != schemas.StatusOK && m != "oom/die" {
			t.Errorf("%s: source %s, status %s", m, e.Manifest.Source, e.Manifest.Status)
		}
		v := device(t, e)
		if v.Verdict != schemas.Exact || v.ResidueBytes != 0 || v.MissingEvents != 0 || v.DifferingBlocks != 0 ||
			v.AmbiguousTags != 0 || v.UnboundTags != 0 {
			t.Errorf("%s: %+v", m, v)
		}
		if v.TorchPeakAllocatedBytes == nil || *v.TorchPeakAllocatedBytes != v.PeakAllocatedBytes {
			t.Errorf("%s: torch's peak differs from the replayed one: %+v", m, v)
		}
		points, err := schemas.Checkpoints.Read(e.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range points {
			if c.Recorded && !c.Agrees || !c.Recorded && c.Agrees {
				t.Errorf("%s: drain %d: recorded %t, agrees %t", m, c.Drain, c.Recorded, c.Agrees)
			}
			if !c.Recorded {
				continue
			}
			if !c.Agrees || c.AllocatedBytes != c.ReplayedAllocatedBytes ||
				c.ReservedBytes != c.ReplayedReservedBytes ||
				c.MissingAllocs|c.MissingFreeRequests|c.MissingFreeCompletes|c.MissingRequestedBytes != 0 {
				t.Errorf("%s: drain %d: %+v", m, c.Drain, c)
			}
		}
	}
}

// limits bounds the unexplained parts of a peak, as shares of the peak.
type limits struct {
	unowned   float64 // other and untraced
	phaseOnly float64 // bytes known only by their phase of birth
}

var (
	dpLimits     = limits{0.01, 0.10}
	scriptLimits = limits{0.03, 0.15}
)

// limitsOf returns the limits of a recording, by its name. Scripts of the store plain have wider limits than
// experiments with differential privacy.
func limitsOf(name string) limits {
	if strings.HasPrefix(name, plain+"/") {
		return scriptLimits
	}
	return dpLimits
}

// Categories sum to the total at the peak and at the end of every phase. Only a small part of the peak is unexplained.
// If the categories of a recording change, the version of the rules must change too.
func TestBreakdownSums(t *testing.T) {
	each := 4
	if testkit.WithRest() {
		each = 40
	}
	digests := map[string]string{}
	for m, e := range recordings(t) {
		moments := []memory.At{{}}
		for i := 0; i < len(e.in.Phases); i += 1 + len(e.in.Phases)/each {
			moments = append(moments, memory.At{Event: &e.in.Phases[i].EndSeq})
		}
		for i, at := range moments {
			b, err := memory.Breakdown(e.in, at)
			if err != nil {
				t.Fatal(err)
			}
			d := b.Devices[0]
			var sum int64
			for _, c := range d.Categories {
				sum += c.Bytes
			}
			if sum != d.AllocatedBytes {
				t.Errorf("%s at %+v: categories sum to %d, allocated is %d", m, at, sum, d.AllocatedBytes)
			}
			if i > 0 {
				continue
			}
			if d.AllocatedBytes != device(t, e).PeakAllocatedBytes {
				t.Errorf("%s: broken down at %d, the peak is %d", m, d.AllocatedBytes, device(t, e).PeakAllocatedBytes)
			}
			limitsOf(m).hold(t, m, &d)
			digests[path.Dir(m)+"/"+e.ID] = digestOf(&d)
		}
	}
	holdToVersion(t, digests)
}

func (l limits) hold(t *testing.T, name string, d *memory.DeviceBreakdown) {
	t.Helper()
	var unowned, phaseOnly int64
	for _, c := range d.Categories {
		phaseOnly += c.PhaseOnlyBytes
		if c.Category == schemas.Other || c.Category == schemas.Untraced {
			unowned += c.Bytes
		}
	}
	t.Logf("%s: %d of %d bytes unexplained, %d known by phase alone", name, unowned, d.AllocatedBytes, phaseOnly)
	if peak := float64(d.AllocatedBytes); float64(unowned) > l.unowned*peak || float64(phaseOnly) > l.phaseOnly*peak {
		t.Errorf("%s: of %d bytes %d are unexplained and %d known by their phase alone", name, d.AllocatedBytes,
			unowned, phaseOnly)
	}
}

// pairs is a store with runs of the suite headline: vanilla, dpsgd and ghost, each with its bare run.
const pairs = "pairs"

// Recording does not change what it measures. The peaks of a recorded run and of its bare run are equal to the byte.
// The bare steps of a recorded run take as long as the steps of the bare run, within 1 %.
func TestInstrumentMovesNothing(t *testing.T) {
	ratios := map[string][]float64{}
	for _, folder := range []string{headline, pairs} {
		full, bare := recorded(t, folder)
		for m := range bare {
			e := full[m]
			if got, want := device(t, e).PeakAllocatedBytes, *device(t, bare[m]).TorchPeakAllocatedBytes; got != want {
				t.Errorf("%s/%s: peak %d instrumented, %d bare", folder, m, got, want)
			}
			a, b := analyze.Summarize(e.in), analyze.Summarize(bare[m].in)
			if a.StepMS.N < 3 || b.StepMS.N < 3 {
				t.Errorf("%s/%s: %d and %d timed steps", folder, m, a.StepMS.N, b.StepMS.N)
			}
			r := a.StepMS.Median / b.StepMS.Median
			ratios[m] = append(ratios[m], r)
			if math.Abs(r-1) > 0.01 {
				t.Errorf("%s/%s: a bare step takes %.2f ms in the instrumented run, %.2f ms in the bare run", folder, m,
					a.StepMS.Median, b.StepMS.Median)
			}
			// Most of the timed steps come after the recorded steps. There are too few timed steps among the recorded
			// ones for a median, so each of these is compared with the bare run's median.
			recordedBare := 0
			for _, s := range e.in.Steps {
				if !s.Recorded || s.Instrumented || s.Warmup || s.GPUNS == 0 {
					continue
				}
				recordedBare++
				if r := float64(s.GPUNS) / 1e6 / b.StepMS.Median; math.Abs(r-1) > 0.01 {
					t.Errorf("%s/%s: step %d, bare and recorded, takes %.2f ms, %.2f ms in the bare run", folder, m,
						s.Step, float64(s.GPUNS)/1e6, b.StepMS.Median)
				}
			}
			if recordedBare == 0 {
				t.Errorf("%s/%s: no timed step was recorded", folder, m)
			}
			for _, r := range []*example{e, bare[m]} {
				c := r.Manifest.Collector
				share := float64(c.CPUNS) / float64(r.Manifest.End.Sub(r.Manifest.Start))
				if share > collectorShare || c.SampleIntervalNS != 10e6 || !c.NVML {
					t.Errorf("%s/%s: the collector used %.2f %% of a core, sampling every %d ns", folder,
						r.Manifest.Name, 100*share, c.SampleIntervalNS)
				}
			}
		}
	}
	for m, all := range ratios {
		t.Logf("%s: a bare step beside that of the bare run: %.5f", m, all)
		if len(all) < 2 {
			t.Errorf("%s: %d pairs", m, len(all))
		}
	}
}

// The headline's peaks are 2,000 MiB lower than in an earlier table, to 1 MiB. The difference is the size of the
// logits, which the headline's training loop does not keep through the step.
func TestKnownPeaks(t *testing.T) {
	const mib = 1 << 20
	full, _ := recorded(t, headline)
	for m, want := range map[string]float64{"vanilla": 62716.5, "dpsgd": 67186.6, "ghost": 69362.7, "fgc": 67814.7,
		"flash": 67330.7} {
		got := float64(device(t, full[m]).PeakAllocatedBytes) / mib
		if math.Abs(got/want-1) > 0.04 {
			t.Errorf("%s: peak %.1f MiB, the table says %.1f", m, got, want)
		}
		if math.Abs(got-(want-2000)) > 1 {
			t.Errorf("%s: peak %.1f MiB; the logits do not explain the difference to %.1f", m, got, want)
		}
	}
	ms := func(m string) float64 { return analyze.Summarize(full[m].in).StepMS.Median }
	if v, d, g := ms("vanilla"), ms("dpsgd"), ms("ghost"); v >= d || g <= 2*d {
		t.Errorf("step times %.0f, %.0f, %.0f ms", v, d, g)
	}
}

// All repeats of an experiment, with events or bare, have exactly the same peak. Every experiment has as many repeats
// as its suite requires.
func TestRepetitions(t *testing.T) {
	for _, s := range suites {
		plan := planOf(t, s)
		peaks := map[string][]int64{}
		for e := range runsOf(t, s) {
			if e.Manifest.Status != schemas.StatusOK {
				t.Errorf("%s/%s: %s", s, e.Manifest.Name, e.Manifest.Status)
				continue
			}
			peaks[e.Manifest.Suite.Key] = append(peaks[e.Manifest.Suite.Key], *device(t, e).TorchPeakAllocatedBytes)
		}
		if len(peaks) != len(plan.Experiments) {
			t.Errorf("%s: %d experiments, planned are %d", s, len(peaks), len(plan.Experiments))
		}
		for _, x := range plan.Experiments {
			got := peaks[x.Key]
			if len(got) != x.Repeats || slices.Min(append(got, math.MaxInt64)) != slices.Max(append(got, 0)) {
				t.Errorf("%s/%s: peaks %v of %d repetitions", s, x.Name, got, x.Repeats)
			}
		}
	}
}

// While an experiment runs, even a short one, the collector takes at most 2 % of a core. For recordings whose manifest
// lacks the collector's set-up time, the limit is 3 %. The collector of these older recordings read NVML's gauges while
// the script made its CUDA context, and used a core for a tenth of a second if the driver stalled.
func TestCollectorShare(t *testing.T) {
	for _, s := range suites {
		for e := range runsOf(t, s) {
			m := e.Manifest
			if m.Source != schemas.Measured || !m.Collector.NVML {
				continue
			}
			limit := collectorShare
			if m.Collector.SetupCPUNS == nil {
				limit = 0.03
			}
			if share := float64(m.Collector.CPUNS) / float64(m.End.Sub(m.Start)); share > limit || share == 0 {
				t.Errorf("%s/%s: the collector used %.2f %% of a core", s, m.RunID, 100*share)
			}
		}
	}
}

// In the run in collector-alone the experiment only slept. If the collector made a CUDA context, the samples would
// show more memory in use and another process.
func TestCollectorTakesNoDevice(t *testing.T) {
	runs, _, err := store.Open(collectorAlone).Runs()
	if err != nil || len(runs) != 1 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	samples, err := schemas.Samples.Read(runs[0].Dir)
	if err != nil || len(samples) < 1000 {
		t.Fatalf("%d samples, %v", len(samples), err)
	}
	m := runs[0].Manifest
	for _, s := range samples {
		if s.UsedBytes != *m.Isolation.IdleBytes || s.OtherProcesses != 0 || s.ProcessBytes != nil &&
			*s.ProcessBytes != 0 {
			t.Fatalf("%d B used (idle %d), %d other processes: %+v", s.UsedBytes, *m.Isolation.IdleBytes,
				s.OtherProcesses, s)
		}
	}
	if share := float64(m.Collector.CPUNS) / float64(m.End.Sub(m.Start)); share > collectorShare ||
		m.Collector.SampleIntervalNS != 10e6 {
		t.Errorf("the collector alone used %.2f %% of a core, sampling every %d ns", 100*share,
			m.Collector.SampleIntervalNS)
	}
}
