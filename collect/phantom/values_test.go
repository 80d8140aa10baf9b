package phantom

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
)

// withModule returns the phantom GPU and a folder with its Python modules.
func withModule(t *testing.T) (*Library, string) {
	library, module := testLibrary(t), t.TempDir()
	if _, err := Unpack(module); err != nil {
		t.Fatal(err)
	}
	return library, module
}

func TestFollowedOperators(t *testing.T) {
	library, module := withModule(t)
	var got struct {
		Cases                       int
		Different                   map[string][2]string
		Reads, Guesses, Assumptions map[string]int
		Notes                       []string
		RandomsKnown                []bool `json:"randoms_known"`
		GeneratorUsed               bool   `json:"generator_used"`
	}
	runScript(t, library, &got, "followed.py", nil, module)
	for name, values := range got.Different {
		t.Errorf("%s: on the host %s, on the device %s", name, values[0], values[1])
	}
	if len(got.Reads)+len(got.Guesses)+len(got.Assumptions)+len(got.Notes) != 0 || got.Cases < 25 {
		t.Errorf("of %d cases: unknown reads %v, guesses %v, assumptions %v, notes %q", got.Cases, got.Reads,
			got.Guesses, got.Assumptions, got.Notes)
	}
	if slices.Contains(got.RandomsKnown, true) || got.GeneratorUsed {
		t.Errorf("random values are known: %v; the script's own generator was used: %v", got.RandomsKnown,
			got.GeneratorUsed)
	}
}

func TestUnknownReadsAreFoundByLine(t *testing.T) {
	library, module := withModule(t)
	var got struct {
		Planted, Item int
		Missing, Loop []int
		False         []string
		Guesses       map[string]int
		Asked         bool
	}
	runScript(t, library, &got, "planted.py", nil, module)
	if !got.Asked {
		t.Error("what autograd's thread asks, where no line of the script runs, is not listed where the script waits " +
			"for it")
	}
	if got.Planted < 25 || len(got.Missing) != 0 || len(got.False) != 0 {
		t.Errorf("of %d planted reads lines %v were not listed, and %v falsely", got.Planted, got.Missing, got.False)
	}
	if got.Item != 1 || !reflect.DeepEqual(got.Loop, []int{4}) {
		t.Errorf("one read counts %d, four count %v", got.Item, got.Loop)
	}
	// Printing a tensor asks which of its elements are not zero, which counts as a guess.
	if want := map[string]int{"nonzero": 5, "_unique2": 1}; !reflect.DeepEqual(got.Guesses, want) {
		t.Errorf("guesses %v, want %v", got.Guesses, want)
	}
}

func TestFiniteIsAssumed(t *testing.T) {
	library, module := withModule(t)
	var got struct {
		Large, Small  [][]float64
		Sites         int
		Guesses       map[string]int
		Assumed       []string
		Asked         bool
		Known, Masked []bool
	}
	runScript(t, library, &got, "finite.py", nil, module)
	scales := []float64{1024, 2048, 2048, 4096, 4096}
	want := [][]float64{scales, scales, scales}
	if !reflect.DeepEqual(got.Large, want) || !reflect.DeepEqual(got.Small, want) {
		t.Errorf("the scales of five steps: %v and %v", got.Large, got.Small)
	}
	// Only loss.item() reads an unknown value.
	if got.Sites != 1 || len(got.Guesses) != 0 || !slices.Contains(got.Assumed, "isnan") ||
		!slices.Contains(got.Assumed, "_amp_foreach_non_finite_check_and_unscale_") {
		t.Errorf("unknown reads at %d places, guesses %v, assumed %v", got.Sites, got.Guesses, got.Assumed)
	}
	if !got.Asked {
		t.Error("questions whether values are finite are not listed by line and count")
	}
	if !reflect.DeepEqual(got.Known, []bool{false, true}) {
		t.Errorf("known infinities: %v", got.Known)
	}
	if !reflect.DeepEqual(got.Masked, []bool{false, false, false, true}) {
		t.Errorf("comparisons with infinities are known: %v", got.Masked)
	}
}

// In a simulated world, a reduction assumes that all ranks have the same values as this rank. The phantom GPU reports
// each read of a value that depends on this assumption.
func TestReductionsOfEqualRanks(t *testing.T) {
	testkit.Rest(t)
	library, module := withModule(t)
	var got struct {
		One, Two            map[string]any
		None, Copied, Sites map[string]int
	}
	runScript(t, library, &got, "reduced.py", nil, module)
	one, two := map[string]any{}, map[string]any{}
	for _, name := range []string{"sum", "avg", "max", "min", "product", "functional", "coalesced", "part", "integers",
		"reduce", "reduce max"} {
		one[name], two[name] = []any{0., 1., 2., 3.}, []any{0., 1., 2., 3.}
	}
	for _, name := range []string{"sum", "functional", "coalesced", "integers"} {
		two[name] = []any{0., 2., 4., 6.}
	}
	two["part"], two["product"], two["reduce"] = []any{0., 1., 4., 6.}, "unknown", "unknown"
	one["unknown"], two["unknown"] = "unknown", "unknown"
	if !reflect.DeepEqual(got.One, one) || !reflect.DeepEqual(got.Two, two) {
		t.Errorf("in a world of one %v\nin a world of two %v", got.One, got.Two)
	}
	for name, times := range got.Copied {
		want := 1
		if two[name] == "unknown" {
			want = 0
		}
		if (times != want && (name != "backward" || times < 1)) || got.None[name] != 0 {
			t.Errorf("%s: told %d times in a world of two, %d times alone", name, times, got.None[name])
		}
	}
	if len(got.Copied) != 16 || len(got.Sites) != 5 {
		t.Errorf("told of %v at %v", got.Copied, got.Sites)
	}
}

func TestWhatIsChangedUnseenIsUnknown(t *testing.T) {
	library, module := withModule(t)
	var got struct {
		Trained   map[string][]bool
		Evaluated []bool
		Bumped    map[string][]bool
		CustomOp  []bool `json:"custom_op"`
		Iterable  []bool
		Reads     map[string]int
	}
	runScript(t, library, &got, "unseen.py", nil, module)
	if len(got.Trained) != 4 || len(got.Bumped) != 8 || len(got.CustomOp) != 8 || len(got.Reads) != 0 {
		t.Errorf("of other cases: %+v", got)
	}
	for name, known := range got.Trained {
		if slices.Contains(known, true) {
			t.Errorf("running statistics are known after a training step: %s", name)
		}
	}
	if slices.Contains(got.Evaluated, false) {
		t.Errorf("running statistics are not known after an evaluation: %v", got.Evaluated)
	}
	for name, known := range got.Bumped {
		if !reflect.DeepEqual(known, []bool{true, false}) {
			t.Errorf("made %s: known before and after a change that autograd alone counts: %v", name, known)
		}
	}
	if slices.Contains(got.CustomOp, true) || slices.Contains(got.Iterable, true) {
		t.Errorf("known after a custom operator's change: %v; after a change of two: %v", got.CustomOp, got.Iterable)
	}
}

// An unknown loss falls with each read. So a loop that stops after several epochs without a better loss runs all its
// epochs. A loop that waits for the loss to pass a threshold makes at least one step and ends. The phantom GPU lists
// each read.
func TestUnknownScalarsFall(t *testing.T) {
	testkit.Rest(t)
	library, module := withModule(t)
	type result struct {
		Reads, Same, Logic, After []bool
		Halves, Counted           []bool
		Patience                  []int
		Two, Half                 int
		Until                     []int
		Zeros                     []any
		Sites                     map[string]int
	}
	var got, again result
	runScript(t, library, &got, "falling.py", nil, module)
	for what, all := range map[string][]bool{"falls": got.Reads, "stays until it is changed": got.Same,
		"goes through logic": got.Logic, "is positive": got.After, "halves every 64 reads": got.Halves,
		"is read by what a comparison decides": got.Counted} {
		if len(all) < 3 || slices.Contains(all, false) {
			t.Errorf("a scalar %s: %v", what, all)
		}
	}
	if want := []int{200, 200, 200, 200, 200}; !reflect.DeepEqual(got.Patience, want) || got.Half != 100 ||
		got.Two != 20 {
		t.Errorf("loops that had patience ended after %d, %d and %d epochs", got.Patience, got.Half, got.Two)
	}
	if len(got.Until) != 3 || slices.Min(got.Until) < 1 || slices.Max(got.Until) > 1000 {
		t.Errorf("loops with a threshold ended at the steps %d", got.Until)
	}
	if want := []any{0., []any{0., 0.}, false, 0.}; !reflect.DeepEqual(got.Zeros, want) {
		t.Errorf("what is no floating-point scalar reads as %v", got.Zeros)
	}
	if len(got.Sites) < 15 || !slices.Contains(slices.Collect(maps.Values(got.Sites)), 9000) {
		t.Errorf("reads are listed at %v", got.Sites)
	}
	if runScript(t, library, &again, "falling.py", nil, module); !reflect.DeepEqual(got, again) {
		t.Errorf("another run gives %+v, the first %+v", again, got)
	}
}

// The phantom GPU can answer one unknown read in the other way without changing the answers to other reads. For a
// failure it names the reads that may have caused it: those in the function that failed first and, if a library raised
// the error, the library's line too.
func TestReadsAreDecided(t *testing.T) {
	library, module := withModule(t)
	var got struct {
		Usual, Other, After      []any
		Named, Torchs, Unrelated []string
		Exits                    [][]string
		Read, Left               int
	}
	runScript(t, library, &got, "decided.py", nil, module)
	if want := []any{false, 0., got.Usual[2]}; !reflect.DeepEqual(got.Usual, want) || !reflect.DeepEqual(got.After, want) {
		t.Errorf("usually %v, and after %v", got.Usual, got.After)
	}
	if want := []any{true, true, 1., 1 / got.Usual[2].(float64), true, true}; len(got.Other) != len(want) ||
		!reflect.DeepEqual(slices.Delete(slices.Clone(got.Other), 3, 4), slices.Delete(want, 3, 4)) ||
		got.Other[3].(float64) <= 1 {
		t.Errorf("the other way %v, want %v", got.Other, want)
	}
	if len(got.Named) == 0 || got.Named[0] != strconv.Itoa(got.Read) || len(got.Unrelated) != 0 {
		t.Errorf("%q are suspected of line %d, and %q of what is unrelated", got.Named, got.Read, got.Unrelated)
	}
	if want := [][]string{{}, {strconv.Itoa(got.Left)}}; !reflect.DeepEqual(got.Exits, want) {
		t.Errorf("%q are suspected of a SystemExit, want %q", got.Exits, want)
	}
	if len(got.Torchs) == 0 || !strings.Contains(got.Torchs[0], " in torch/testing/_comparison.py:") {
		t.Errorf("%q are suspected of what a library raised", got.Torchs)
	}
}

// A loop that waits for an unknown truth value ends, since after many reads as false the phantom GPU answers true
// once. A warning names the loop's line, and the reads are reported while the loop still waits.
func TestWaitsEnd(t *testing.T) {
	library, module := withModule(t)
	var got struct {
		Waits, Again, Twice, Told []int
		Floats                    []bool
		Notes                     []string
		Handled                   int
		Raised                    []int
	}
	stderr := runScript(t, library, &got, "waits.py", nil, module)
	if got.Handled != 1 {
		t.Error("a signal handler that reads while a read is counted did not")
	}
	if !reflect.DeepEqual(got.Raised, []int{20, 20, 20}) || strings.Contains(stderr, "ignored") {
		t.Errorf("of 20 errors each that signal handlers raised, the script got %v", got.Raised)
	}
	if want := []int{50, 50, 50}; !reflect.DeepEqual(got.Waits, want) {
		t.Errorf("loops ended after %v steps, want %v", got.Waits, want)
	}
	if !reflect.DeepEqual(got.Twice, []int{50, 10}) || !reflect.DeepEqual(got.Again, []int{50, 10}) {
		t.Errorf("the same line waited %v and %v steps", got.Twice, got.Again)
	}
	if slices.Contains(got.Floats, false) {
		t.Errorf("numbers are not what falls: %v", got.Floats)
	}
	if !slices.Contains(got.Told, 1) {
		t.Errorf("was told of at the reads %v", got.Told)
	}
	notes := strings.Join(got.Notes, "\n")
	for _, want := range []string{"waits.py:23 read a truth value that the phantom GPU does not compute: it was " +
		"false 50 times in a row, then true, 2 times so far", "waits.py:30 read a truth value",
		"waits.py:35 asked how much memory of the device is free"} {
		if !strings.Contains(notes, want) {
			t.Errorf("no %q in %s", want, notes)
		}
	}
	if !strings.Contains(stderr, "waits.py:23 read values that the phantom GPU does not compute 50 times") {
		t.Errorf("no warning: %s", stderr)
	}
}
