package report

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze/identity"
)

func TestUnlikeWords(t *testing.T) {
	got := unlikeWords([]identity.Unlike{{Title: "train", Arguments: []string{"--bs 8", "", "--bs 16"}}})
	if want := []string{"train: runs with different arguments (--bs 8, none, --bs 16) are different experiments; " +
		"collect --param NAME=VALUE names what varies"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
