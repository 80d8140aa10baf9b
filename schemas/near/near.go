// Package near finds the name that a mistyped name probably stands for.
package near

import "strings"

// Word returns the candidate closest to word, or "" if no candidate is close. A candidate is close if at most a third
// of the longer word's letters differ, or if the candidate begins with word.
func Word(word string, candidates []string) string {
	word = strings.ToLower(word)
	best, bestDistance := "", -1
	for _, candidate := range candidates {
		lower := strings.ToLower(candidate)
		distance := Distance(word, lower)
		closeEnough := 3*distance <= max(len(word), len(lower)) ||
			len(word) >= 3 && strings.HasPrefix(lower, word)
		if closeEnough && (bestDistance < 0 || distance < bestDistance) {
			best, bestDistance = candidate, distance
		}
	}
	return best
}

// Distance is the optimal string alignment distance: insertions,
// deletions, substitutions and swaps of neighbours, each at cost 1.
func Distance(a, b string) int {
	older, previous := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current := make([]int, len(b)+1)
		current[0] = i
		for j := 1; j <= len(b); j++ {
			substitution := previous[j-1]
			if a[i-1] != b[j-1] {
				substitution++
			}
			current[j] = min(previous[j]+1, current[j-1]+1, substitution)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], older[j-2]+1)
			}
		}
		older, previous = previous, current
	}
	return previous[len(b)]
}

// Guess returns the end of an error message: "; did you mean X?" if a candidate is close, else the list of candidates:
// "; there are A, B".
func Guess(word string, candidates []string) string {
	if guess := Word(word, candidates); guess != "" {
		return "; did you mean " + guess + "?"
	}
	return "; there are " + strings.Join(candidates, ", ")
}
