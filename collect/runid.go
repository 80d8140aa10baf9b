package collect

import (
	"crypto/rand"
	"encoding/hex"
	"path/filepath"
	"strings"
	"time"

	"github.com/dpsight/dpsight/schemas/launch"
)

const runTimeLayout = "20060102T150405Z"

// maxName is the most characters of a name in a run id, which keeps ids short enough for every file system.
const maxName = 64

// NewRunID returns a new run id: time, name and a random suffix. Run ids sort by time and are safe in a path.
func NewRunID(start time.Time, name string) string {
	var b [3]byte
	rand.Read(b[:]) // Read never fails
	return start.UTC().Format(runTimeLayout) + "-" + SafeName(name) + "-" + hex.EncodeToString(b[:])
}

// SafeName returns a name for use in a path: letters, digits, dots, underscores and dashes stay, and other characters
// become dashes.
func SafeName(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '.':
			b.WriteRune(r)
		default:
			if s := b.String(); s != "" && !strings.HasSuffix(s, "-") {
				b.WriteByte('-')
			}
		}
		if b.Len() >= maxName {
			break
		}
	}
	if s := strings.Trim(b.String(), "-."); s != "" {
		return s
	}
	return "run"
}

// nameOf returns an experiment's name: its script's or, without a script, its program's.
func nameOf(argv []string) string {
	base := func(p string) string { return strings.TrimSuffix(filepath.Base(p), ".py") }
	for i, arg := range argv {
		if strings.HasSuffix(arg, ".py") {
			return base(arg)
		}
		if launch.StartsModule(arg) && i+1 < len(argv) && !launch.IsModule(argv[i+1]) {
			return base(argv[i+1])
		}
	}
	return base(argv[0])
}
