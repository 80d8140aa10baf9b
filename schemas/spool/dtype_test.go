package spool

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// The agent numbers dtypes as its journal's reader does.
func TestDTypesAreTheAgents(t *testing.T) {
	b, err := os.ReadFile("../../collect/agent/python/dpsight/kinds.py")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?s)DTYPES = \((.*?)\)`).FindSubmatch(b)
	if list == nil {
		t.Fatal("kinds.py has no DTYPES")
	}
	want := []string{""}
	for _, m := range regexp.MustCompile(`"(\w+)"`).FindAllSubmatch(list[1], -1) {
		want = append(want, string(m[1]))
	}
	if !slices.Equal(dtypeNames[:], want) {
		t.Errorf("the agent has %v, its reader %v", want, dtypeNames)
	}
	if DType(250).String() != "" {
		t.Error("a number of no dtype has a name")
	}
}
