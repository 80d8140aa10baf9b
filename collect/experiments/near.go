package experiments

import (
	"strings"

	"github.com/dpsight/dpsight/schemas/near"
)

// unknown returns the error text for a name that is not in known.
func unknown(noun, word string, known, candidates []string) string {
	sentence := "unknown " + noun + " " + quote(word)
	if guess := near.Word(word, candidates); guess != "" {
		return sentence + "; did you mean " + guess + "?"
	}
	return sentence + "; known: " + strings.Join(known, ", ")
}
