package phantom

import "testing"

// As with CUDA, a child process cannot use a device that its parent used before the fork, and neither can the child's
// children. A child that was forked before the parent used the device can use it.
func TestForks(t *testing.T) {
	const notInitialized = 3
	library := testLibrary(t)
	var got struct {
		Before, Parent  int
		BeforeCalls     map[string]int `json:"before_calls"`
		AfterCalls      map[string]int `json:"after_calls"`
		GrandchildCalls map[string]int `json:"grandchild_calls"`
	}
	runScript(t, library, &got, "forked.py", nil)
	if got.Before != 3 || got.Parent != 3 || len(got.BeforeCalls) == 0 {
		t.Fatalf("%+v", got)
	}
	for name, status := range got.BeforeCalls {
		if status != 0 {
			t.Errorf("%s in a child that was forked before: %d", name, status)
		}
		if after, later := got.AfterCalls[name], got.GrandchildCalls[name]; after != notInitialized ||
			later != notInitialized {
			t.Errorf("%s in a child that was forked after: %d, in a child of that one: %d", name, after, later)
		}
	}
}
