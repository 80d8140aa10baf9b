package memory

import (
	"fmt"
	"strconv"
	"strings"
)

// At names a moment of a run. The zero At is the peak.
type At struct {
	Event *int64 // the moment just after this event
	OOM   *int64 // the moment of the device's n-th request that failed because memory was short, from 1
	Step  *int64 // with Phase: the highest moment of that phase of that step
	// if Step is nil: the phase's highest occurrence; "backward" means every phase of its family, see [PhaseFamily]
	Phase string
}

// ParseAt reads "peak", "oom", "oom=N", "event=N", "step=N", "phase=P" or "step=N,phase=P".
func ParseAt(s string) (At, error) {
	var at At
	switch s {
	case "", "peak":
		return at, nil
	case "oom":
		at.OOM = new(int64(1))
		return at, nil
	}
	given := map[string]bool{}
	for part := range strings.SplitSeq(s, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || value == "" {
			return At{}, fmt.Errorf("moment %q is not peak, oom, event=N, or step=N,phase=P", s)
		}
		if given[key] {
			return At{}, fmt.Errorf("moment %q: %s is given twice", s, key)
		}
		given[key] = true
		n, err := strconv.ParseInt(value, 10, 64)
		switch key {
		case "phase":
			at.Phase = value
		case "event":
			if err != nil || n < 0 {
				return At{}, fmt.Errorf("moment %q: event must be a whole number, 0 or more", s)
			}
			at.Event = &n
		case "oom":
			if err != nil || n < 1 {
				return At{}, fmt.Errorf("moment %q: oom must be a whole number, 1 or more", s)
			}
			at.OOM = &n
		case "step":
			if err != nil || n < -1 {
				return At{}, fmt.Errorf("moment %q: step must be a whole number, -1 or more", s)
			}
			at.Step = &n
		default:
			return At{}, fmt.Errorf("moment %q: unknown key %q (oom, event, step, phase)", s, key)
		}
	}
	switch more := at.Step != nil || at.Phase != ""; {
	case at.Event != nil && (more || at.OOM != nil):
		return At{}, fmt.Errorf("moment %q: an event is a moment by itself", s)
	case at.OOM != nil && more:
		return At{}, fmt.Errorf("moment %q: a failure is a moment by itself", s)
	}
	return at, nil
}

// String is what [ParseAt] reads.
func (at At) String() string {
	var keys []string
	switch {
	case at.Event != nil:
		return fmt.Sprintf("event=%d", *at.Event)
	case at.OOM != nil && *at.OOM == 1:
		return "oom"
	case at.OOM != nil:
		return fmt.Sprintf("oom=%d", *at.OOM)
	case at == At{}:
		return "peak"
	}
	if at.Step != nil {
		keys = append(keys, fmt.Sprintf("step=%d", *at.Step))
	}
	if at.Phase != "" {
		keys = append(keys, "phase="+at.Phase)
	}
	return strings.Join(keys, ",")
}
