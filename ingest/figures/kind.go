package figures

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// Head is how many bytes at the beginning of a file [KindOf] needs.
const Head = 64 << 10

// KindOf returns the kind of a file from its first bytes, at most [Head].
func KindOf(head []byte) Kind {
	head = bytes.TrimPrefix(head, []byte(byteOrderMark))
	switch trimmed := bytes.TrimLeft(head, " \t\r\n"); {
	case len(trimmed) == 0:
		return None
	case trimmed[0] == '{':
		return kindOfObject(keys(trimmed))
	case trimmed[0] == '[':
		return kindOfList(trimmed)
	}
	line, _, _ := strings.Cut(string(head[:min(len(head), 4096)]), "\n")
	switch {
	case strings.Contains(line, peakColumn) && strings.Contains(line, ","):
		return schemas.ImportSweepTable
	case logHead.Match(head):
		return schemas.ImportTrainerLog
	}
	return None
}

// logHead matches lines that a log of the trainer profiler has near its beginning.
var logHead = regexp.MustCompile(`(?m)^` + logRun + `|^\w[\w ]* Memory Usage:\r?\n  (GPU Allocated|System RSS): `)

func kindOfObject(has map[string]bool) Kind {
	switch {
	case has["experiment"] && (has["snapshots"] || has["breakdown"] || has["peak_memory_mb"]):
		return schemas.ImportComponents
	case has["traceEvents"] || has["schemaVersion"] && has["deviceProperties"]:
		return schemas.ImportTrace
	case has["detailed_results"] || has["summary"] && has["summary.total_experiments"]:
		return schemas.ImportTrainerSummary
	}
	return None
}

// timelineHead matches the beginning of a memory timeline: a list of events, or a list of times.
var timelineHead = regexp.MustCompile(`^\[\s*(-1|\d{10,19})\s*,\s*-?\d+\s*,`)

func kindOfList(head []byte) Kind {
	switch inside := bytes.TrimLeft(head[1:], " \t\r\n"); {
	case timelineHead.Match(inside):
		return schemas.ImportMemoryTimeline
	case len(inside) > 0 && inside[0] == '{':
		switch has := keys(inside); {
		case has["ph"] && has["ts"]:
			return schemas.ImportTrace
		case has["peak_memory"]:
			return schemas.ImportSweep
		case has["stage"] && has["before"]:
			return schemas.ImportStages
		}
	}
	return None
}

// keys returns the keys of a JSON object, which may be cut short. Keys of the objects directly inside it appear as
// "outer.inner".
func keys(object []byte) map[string]bool {
	has := map[string]bool{}
	d := json.NewDecoder(bytes.NewReader(object))
	type level struct {
		object, value bool // the next token is a value, and no key
		key           string
	}
	var open []level
	for {
		token, err := d.Token()
		if err != nil {
			return has
		}
		top := len(open) - 1
		switch t := token.(type) {
		case json.Delim:
			if t == '}' || t == ']' {
				if open = open[:top]; len(open) == 0 {
					return has
				}
				continue
			}
			if top >= 0 {
				open[top].value = false
			}
			open = append(open, level{object: t == '{'})
			continue
		case string:
			if l := &open[top]; l.object && !l.value {
				l.key, l.value = t, true
				switch {
				case top == 0:
					has[t] = true
				case top == 1 && open[0].object:
					has[open[0].key+"."+t] = true
				}
				continue
			}
		}
		open[top].value = false
	}
}
