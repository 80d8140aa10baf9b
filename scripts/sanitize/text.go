package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"
)

var (
	uuids = regexp.MustCompile(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
	// Go has no lookbehind, so the character before the path is matched too, and put back.
	paths    = regexp.MustCompile(`(^|[^\w./])/(?:[\w.+@-]+/)+([\w.+@-]*)`)
	literals = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
)

// A file name that ends like one of these says what the file is, wherever it lies, so the ending is kept: analyze
// recognises stack frames by it. The files are those of packages, of Python itself, and those that collect writes into
// a numbered folder for each run.
var (
	packaged  = regexp.MustCompile(`^.*(/(?:site|dist)-packages/.*)$`)
	ownPython = regexp.MustCompile(`^.*(/lib/python3\.[0-9]+/.*)$`)
	collected = regexp.MustCompile(`^.*/dpsight-[0-9]+(/(?:python/dpsight/.*|python/sitecustomize\.py|` +
		`experiments/dpsight_experiments/.*|phantom_\w+\.py))$`)
)

// A cleaner removes from text everything that tells where a run was recorded. It numbers UUIDs in the order in which it
// meets them.
type cleaner struct {
	uuids map[string]string
	files map[string]string // of one run: files by their replacements
}

func newCleaner() *cleaner { return &cleaner{map[string]string{}, map[string]string{}} }

// text returns s without UUIDs, without paths except their last parts, and without the host's name.
func (c *cleaner) text(s, host string) string {
	s = uuids.ReplaceAllStringFunc(s, c.uuid)
	s = paths.ReplaceAllString(s, "$1$2")
	if host != "" {
		// Only whole words are replaced: a host called vm must not turn nvml into ngpu-hostl.
		s = regexp.MustCompile(`\b`+regexp.QuoteMeta(host)+`\b`).ReplaceAllLiteralString(s, hostName)
	}
	return s
}

// frame cleans one string of a recorded stack's frame. A file's path becomes its path in its environment, or its name.
// Other strings are cleaned as text. Two files with one name get two replacements.
func (c *cleaner) frame(s, host string) string {
	if !strings.HasPrefix(s, "/") && !strings.HasPrefix(s, "../") {
		return c.text(s, host)
	}
	file := neutral(s)
	for n := 2; c.files[file] != "" && c.files[file] != s; n++ {
		file = fmt.Sprintf("%d/%s", n, path.Base(s))
	}
	c.files[file] = s
	return file
}

func neutral(file string) string {
	if end := collected.FindStringSubmatch(file); end != nil {
		return "/dpsight-0" + end[1]
	}
	for _, kept := range []*regexp.Regexp{packaged, ownPython} {
		if end := kept.FindStringSubmatch(file); end != nil {
			return end[1]
		}
	}
	return path.Base(file)
}

func (c *cleaner) uuid(u string) string {
	u = strings.ToLower(u)
	if strings.HasPrefix(u, "00000000-0000-0000-0000-") { // an earlier pass replaced it
		return u
	}
	if c.uuids[u] == "" {
		c.uuids[u] = fmt.Sprintf("00000000-0000-0000-0000-%012x", len(c.uuids))
	}
	return c.uuids[u]
}

// json cleans every string in a JSON document and changes nothing else. Strings are cleaned after decoding: in encoded
// JSON, the beginning of a path behind an escaped line end would be missed.
func (c *cleaner) json(doc []byte, host string) ([]byte, error) {
	return literally(doc, func(s string) string { return c.text(s, host) })
}

// literally returns a JSON document in which each string is replaced.
func literally(doc []byte, replace func(string) string) ([]byte, error) {
	var failed error
	doc = literals.ReplaceAllFunc(doc, func(literal []byte) []byte {
		var s string
		if err := json.Unmarshal(literal, &s); err != nil {
			failed = fmt.Errorf("the string %s: %w", literal, err)
			return literal
		}
		clean := replace(s)
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
