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

// maxName keeps run ids short enough for every file system.
const maxName = 64

// NewRunID makes a run's id: time, name, random suffix. Run ids sort by time and are safe in a path.
func NewRunID(start time.Time, name string) string {
	var b [3]byte
	rand.Read(b[:]) // never fails
	return start.UTC().Format(runTimeLayout) + "-" + SafeName(name) + "-" + hex.EncodeToString(b[:])
}

// SafeName makes a name safe in a path: letters, digits, dot, underscore and dash; anything else becomes a dash.
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

// nameOf names an experiment after its script, or after its program if there is no script.
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
