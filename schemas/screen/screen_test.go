package screen

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestWrap(t *testing.T) {
	for _, test := range []struct {
		text    string
		columns int
		want    string
	}{
		{"one two three", 0, "one two three"},
		{"one two three", 13, "one two three"},
		{"one two three", 12, "one two\n  three"},
		{"one two three", 7, "one two\n  three"},
		{"  kept indent and more", 13, "  kept indent\n  and more"},
		{"see /a/path/that/is/long now", 10, "see\n  /a/path/that/is/long\n  now"},
		{"first line\nsecond one here", 10, "first line\nsecond one\n  here"},
		{"世界 世界 世界", 9, "世界 世界\n  世界"},
	} {
		if got := Wrap(test.text, test.columns, "  "); got != test.want {
			t.Errorf("%q at %d: %q, want %q", test.text, test.columns, got, test.want)
		}
	}
}

// If an output is no terminal, it has no colours, and no limit of columns unless COLUMNS sets one.
func TestOn(t *testing.T) {
	t.Setenv("COLUMNS", "")
	var b bytes.Buffer
	if o := On(&b, false); o.Columns != 0 || o.Colours || o.Bold("x") != "x" {
		t.Errorf("%+v", o)
	}
	for value, want := range map[string]int{"80": 80, "10": fewest, "-1": 0, "many": 0} {
		t.Setenv("COLUMNS", value)
		if got := On(&b, false).Columns; got != want {
			t.Errorf("COLUMNS=%s: %d, want %d", value, got, want)
		}
	}
	t.Setenv("COLUMNS", "80")
	if On(&b, true).Columns != 0 {
		t.Error("wide output has a width")
	}
	if Of(&b).Columns != 0 {
		t.Error("a file in the making has a width")
	}
}

// A line of progress fits into the terminal's width, for any text.
func TestBar(t *testing.T) {
	for _, test := range []struct {
		text string
		done float64
		left time.Duration
		want string
	}{
		{"run 2 of 5: ghost", 0.25, 0, "run 2 of 5: ghost  25% |██        |"},
		{"run 2 of 5: ghost", 0.5, 95 * time.Second, "run 2 of 5: ghost  50% |█████     |  1:35 left"},
		{"ghost", 0, 0, "ghost   0% |          |"},
		{"ghost", 1, 0, "ghost  99% |█████████ |"},
	} {
		if got := Bar(test.text, test.done, test.left, 80); got != test.want {
			t.Errorf("%s: %q, want %q", test.text, got, test.want)
		}
	}
	long := Bar(strings.Repeat("a long name ", 20), 0.5, time.Hour, 60)
	if Width(long) > 59 || !strings.HasSuffix(long, "50% |█████     |  1:00:00 left") {
		t.Errorf("%d columns: %q", Width(long), long)
	}
}

func TestLeft(t *testing.T) {
	if got := Left(0.25, 10*time.Second); got != 30*time.Second {
		t.Error(got)
	}
	if Left(0.5, time.Second) != 0 || Left(0.01, time.Hour) != 0 {
		t.Error("too little was done to tell")
	}
}
