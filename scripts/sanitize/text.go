package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

var (
	uuids = regexp.MustCompile(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
	// Go has no lookbehind: what stands before the path is matched too, and put back.
	paths    = regexp.MustCompile(`(^|[^\w./])/(?:[\w.+@-]+/)+([\w.+@-]*)`)
	literals = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
)

// A cleaner takes out of text what says where it was recorded. Its UUIDs are numbered in the order in which they are met.
type cleaner struct {
	uuids map[string]string
}

func newCleaner() *cleaner { return &cleaner{map[string]string{}} }

// text is s without UUIDs, paths (their last part stays) and the host's name.
func (c *cleaner) text(s, host string) string {
	s = uuids.ReplaceAllStringFunc(s, c.uuid)
	s = paths.ReplaceAllString(s, "$1$2")
	if host != "" {
		// A whole word: a host called vm must not make ngpu-hostl of nvml.
		s = regexp.MustCompile(`\b`+regexp.QuoteMeta(host)+`\b`).ReplaceAllLiteralString(s, hostName)
	}
	return s
}

func (c *cleaner) uuid(u string) string {
	u = strings.ToLower(u)
	if strings.HasPrefix(u, "00000000-0000-0000-0000-") { // of an earlier pass
		return u
	}
	if c.uuids[u] == "" {
		c.uuids[u] = fmt.Sprintf("00000000-0000-0000-0000-%012x", len(c.uuids))
	}
	return c.uuids[u]
}

// json is a document with every string in it cleaned, and otherwise as it was. Strings are cleaned decoded: after an
// escaped line end a path would not be seen to begin.
func (c *cleaner) json(doc []byte, host string) ([]byte, error) {
	var failed error
	doc = literals.ReplaceAllFunc(doc, func(literal []byte) []byte {
		var s string
		if err := json.Unmarshal(literal, &s); err != nil {
			failed = fmt.Errorf("the string %s: %w", literal, err)
			return literal
		}
		clean := c.text(s, host)
		if clean == s {
			return literal
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(clean); err != nil {
			failed = err
		}
		return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	})
	return doc, failed
}
