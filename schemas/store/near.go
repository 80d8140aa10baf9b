package store

import (
	"cmp"
	"slices"
	"strings"

	nearly "github.com/dpsight/dpsight/schemas/near"
)

// near returns the names and ids of runs that resemble arg, the most similar first.
func near(names []string, arg string) []string {
	type candidate struct {
		word string
		cost int
	}
	var found []candidate
	seen := map[string]bool{}
	consider := func(word string) {
		if word == "" || seen[word] {
			return
		}
		seen[word] = true
		lower := strings.ToLower(word)
		cost := nearly.Distance(strings.ToLower(arg), lower)
		if n := len(arg); n < len(lower) { // compares with the beginning of a longer name, which may be mistyped
			cost = min(cost, 1+nearly.Distance(strings.ToLower(arg), lower[:n]))
		}
		if arg != "" && strings.Contains(strings.ToLower(word), strings.ToLower(arg)) {
			cost = 1
		}
		if cost <= 1+len(arg)/3 {
			found = append(found, candidate{word, cost})
		}
	}
	for _, name := range names {
		consider(name)
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.cost, b.cost) })
	words := make([]string, 0, fewRuns)
	for _, c := range found[:min(len(found), fewRuns)] {
		words = append(words, c.word)
	}
	return words
}
