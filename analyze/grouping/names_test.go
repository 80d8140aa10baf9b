package grouping

import (
	"slices"
	"testing"
)

func TestNamesAreInOrderOfTheirNumbers(t *testing.T) {
	want := []string{"blocks", "blocks.2", "blocks.10.mlp", "global kept['out'][9]", "global kept['out'][10]", "head"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, CompareNames)
	if !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}
