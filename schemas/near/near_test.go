package near

import "testing"

func TestGuess(t *testing.T) {
	phases := []string{"backward", "backward.norm", "forward", "optimizer"}
	for word, want := range map[string]string{
		"bakward": "; did you mean backward?", "Forward": "; did you mean forward?",
		"fowrard": "; did you mean forward?", "opt": "; did you mean optimizer?",
		"backward.nrom": "; did you mean backward.norm?", "clip": "; there are backward, backward.norm, forward, " +
			"optimizer",
	} {
		if got := Guess(word, phases); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}
