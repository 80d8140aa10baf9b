package plates

import (
	"strings"
	"unicode"
)

// Mark follows the label of a run that is not private and does a part of a private method's work.
const Mark = "\u2009†"

// names are the names of categories and phases in figures where they differ from the key with spaces.
var names = map[string]string{
	"optimizer_state":       "Optimizer state",
	"summed_gradients":      "Summed gradients",
	"per_sample_gradients":  "Per-sample gradients",
	"norm_samples":          "Per-sample norms",
	"hook_activations":      "Held by DP hooks only",
	"stored_backprops":      "Stored backprops",
	"clip_temporaries":      "Clipping temporaries",
	"activation_gradients":  "Activation gradients",
	"forward_temporaries":   "Forward temporaries",
	"optimizer_temporaries": "Optimizer temporaries",
	"autocast_cache":        "Autocast cache",
	"script":                "The script's own",
	"backward":              "Backward, in one pass",
	"pending_free":          "Waiting to be freed",
	"cached":                "Cached by torch",
	"non_torch":             "Outside of torch",
	"modules":               "CUDA modules",
}

// PhaseKeys are the keys of the phases that have a colour, in the order of a step. Phases without a key in PhaseKeys
// have the colour of minor phases.
var PhaseKeys = []string{"forward", "backward", "norm_pass", "gradient_pass", "clip", "noise", "optimizer"}

// nameOf returns the name of a key: the caller's name, this package's, or the key with spaces and a capital.
func nameOf(key string, callers map[string]string) string {
	if s := callers[key]; s != "" {
		return s
	}
	if s := names[key]; s != "" {
		return s
	}
	s := clean(key)
	if s == "" {
		return "Unnamed"
	}
	first := []rune(s)
	return strings.ToUpper(string(first[:1])) + string(first[1:])
}

// within returns a label for use inside a sentence: if its first word has only one capital, it becomes small.
func within(label string) string {
	all := []rune(label)
	if len(all) > 1 && unicode.IsUpper(all[0]) && unicode.IsLower(all[1]) {
		all[0] = unicode.ToLower(all[0])
	}
	return string(all)
}

// shortName returns a key's name as it is written into a segment, in small letters.
func shortName(key string, callers map[string]string) string {
	s := nameOf(key, callers)
	if callers[key] == "" && key == "backward" {
		s = "Backward"
	}
	return within(s)
}
