package phantom

import (
	"maps"
	"slices"
	"testing"
)

// On the phantom GPU, torch.cuda._sleep keeps a stream busy. An event recorded after it is pending, and the allocator
// does not hand out memory again that the busy stream uses.
func TestStreams(t *testing.T) {
	library := testLibrary(t)
	var got struct {
		Pending        map[string]bool
		Polled         int
		Reused, Pinned []bool
		Warned         []int
		FreedInCapture []bool `json:"freed_in_capture"`
		AfterCapture   bool   `json:"after_capture"`
	}
	runScript(t, library, &got, "streams.py", nil)
	want := map[string]bool{"before": true, "slept": false, "stream": false, "other": true, "follower": false,
		"waited": true}
	if !maps.Equal(got.Pending, want) {
		t.Errorf("done: got %v, want %v", got.Pending, want)
	}
	if got.Polled < 5 || got.Polled > 20 {
		t.Errorf("10 ms of sleep were over after %d looks", got.Polled)
	}
	if !slices.Equal(got.Reused, []bool{true, false, true}) {
		t.Errorf("a block that another stream used is given out again without sleep, while it sleeps, and after: %v",
			got.Reused)
	}
	if !slices.Equal(got.Pinned, []bool{false, true}) {
		t.Errorf("a pinned block is given out again while its copy waits, and after: %v", got.Pinned)
	}
	if !slices.Equal(got.Warned, []int{1, 0, 0}) {
		t.Errorf("warnings about a graph of nothing, of a kernel, of a multiplication: %v", got.Warned)
	}
	if !slices.Equal(got.FreedInCapture, []bool{false, true}) {
		t.Errorf("a block is given out again within a capture before the other stream is joined, and after: %v",
			got.FreedInCapture)
	}
	if got.AfterCapture {
		t.Error("a stream that waits for an event of an ended capture is captured")
	}
}
