package spool

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The agent and package spool have the same number for each dtype.
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

// The agent and package spool have the same name and number for each kind of tag.
func TestTagKindsAreTheAgents(t *testing.T) {
	b, err := os.ReadFile("../../collect/agent/python/dpsight/kinds.py")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?s)# Kinds of tags\.\n(.*?)\n\n`).FindSubmatch(b)
	if list == nil {
		t.Fatal("kinds.py has no kinds of tags")
	}
	agents := []string{"unknown"}
	for _, m := range regexp.MustCompile(`(?m)^([A-Z_]+) = (\d+)$`).FindAllSubmatch(list[1], -1) {
		if n, err := strconv.Atoi(string(m[2])); err != nil || n != len(agents) {
			t.Errorf("%s has the number %d, not %d", m[1], n, len(agents))
		}
		agents = append(agents, strings.ToLower(string(m[1])))
	}
	if !slices.Equal(agents, tagKindNames[:]) {
		t.Errorf("the agent's kinds of tags are %q, its reader's %q", agents, tagKindNames)
	}
}
