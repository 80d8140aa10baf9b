package findings

import "github.com/dpsight/dpsight/schemas"

// expandable reports whether torch uses expandable segments. The settings that the agent read tell it, or events that
// map memory into segments, which only expandable segments have. An imported snapshot has no settings, and a script may
// change its settings after the agent read them.
func expandable(in *schemas.Tables) bool {
	if e := in.Manifest.Environment; e != nil && e.AllocatorSettings["expandable_segments"] == true {
		return true
	}
	for i := range in.Events {
		if schemas.Action(in.Events[i].Action) == schemas.ActionSegmentMap {
			return true
		}
	}
	return false
}

// roundsUp reports whether the setting roundup_power2_divisions makes torch round requests up.
func roundsUp(in *schemas.Tables) bool {
	e := in.Manifest.Environment
	if e == nil {
		return false
	}
	divisions, _ := e.AllocatorSettings["roundup_power2_divisions"].(map[string]any)
	for _, n := range divisions {
		if n, ok := n.(float64); ok && n > 0 {
			return true
		}
	}
	return false
}
