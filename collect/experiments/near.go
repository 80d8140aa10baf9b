package experiments

import "strings"

// near returns the candidate closest to word, or "" if none is close enough to
// be what a user meant: at most a third of the longer word's letters differ, or one is
// the start of the other.
func near(word string, candidates []string) string {
	word = strings.ToLower(word)
	best, bestDistance := "", -1
	for _, candidate := range candidates {
		lower := strings.ToLower(candidate)
		distance := editDistance(word, lower)
		closeEnough := 3*distance <= max(len(word), len(lower)) ||
			len(word) >= 3 && strings.HasPrefix(lower, word)
		if closeEnough && (bestDistance < 0 || distance < bestDistance) {
			best, bestDistance = candidate, distance
		}
	}
	return best
}

// editDistance is the optimal string alignment distance: insertions,
// deletions, substitutions and swaps of neighbours, each at cost 1.
func editDistance(a, b string) int {
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

// unknown is the sentence for a name that is none of known.
func unknown(noun, word string, known, candidates []string) string {
	sentence := "unknown " + noun + " " + quote(word)
	if guess := near(word, candidates); guess != "" {
		return sentence + "; did you mean " + guess + "?"
	}
	return sentence + "; known: " + strings.Join(known, ", ")
}
