package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/ranks"
	"github.com/dpsight/dpsight/schemas"
)

// TestRanksWords checks the texts about a rank that differs from the others, about ranks that do not differ, and about
// a single rank.
func TestRanksWords(t *testing.T) {
	of := func(activations ...int64) ranks.Run {
		var all []schemas.Tables
		for _, bytes := range activations {
			in := fixture.PeakOf(fixture.Part{Category: schemas.Parameters, Bytes: 1 << 30},
				fixture.Part{Category: schemas.Activations, Bytes: bytes, Module: 3})
			in.Lines = []schemas.Line{{Line: 1, File: "train.py", Number: 31}}
			in.Allocations[1].Line = 1
			all = append(all, in)
		}
		run, err := ranks.Of(fixture.Ranks(all...))
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	for _, c := range []struct {
		run  ranks.Run
		want string
	}{
		{of(1), "the run has one rank with one device: there is nothing to compare"},
		{of(1, 2, 3), "none of the 3 peaks lies apart"},
		{of(1<<30, 11<<30), "rank 1 holds 10.00 GiB more than rank 0: 10.00 GiB more of activations in mlp; " +
			"train.py:31 asked for 10.00 GiB more"},
		{of(1<<30, 1<<30, 1<<29), "rank 2 holds 512.00 MiB less than the median of the other 2 devices: 512.00 MiB less " +
			"of activations in mlp; train.py:31 asked for 512.00 MiB less"},
	} {
		if got := ranksWords(&c.run); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	doc := ranks.NewDocument(of(1<<30, 11<<30))
	tables := RanksTables(doc)
	if len(tables) != 2 || !strings.HasPrefix(tables[1].Title, "What rank 1 holds more of than rank 0 in peak") {
		t.Fatalf("%+v", tables)
	}
	var kinds []string
	for _, row := range tables[1].Rows {
		kinds = append(kinds, row[0].Text+" "+row[1].Text+" "+row[4].Text)
	}
	if want := []string{"category activations +10,240.00", "module activations, mlp +10,240.00",
		"line train.py:31 +10,240.00"}; !slices.Equal(kinds, want) {
		t.Errorf("%q, want %q", kinds, want)
	}
}
