package findings

import "github.com/dpsight/dpsight/schemas"

// expandable reports whether torch has expandable segments: by its settings as the agent read them, or since it maps
// memory into segments, which torch does for no other segments. An imported snapshot has no settings, and a script
// may change them later.
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

// roundsUp reports whether torch's settings round requests up to a part of a power of two.
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
