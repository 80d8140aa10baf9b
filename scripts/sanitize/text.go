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

// kept are endings of paths that tell what a file is, wherever it lies. analyze recognises frames by them. They are
// files of packages, Python's own, and files that collect writes into a numbered folder for each run.
var (
	packaged  = regexp.MustCompile(`^.*(/(?:site|dist)-packages/.*)$`)
	ownPython = regexp.MustCompile(`^.*(/lib/python3\.[0-9]+/.*)$`)
	collected = regexp.MustCompile(`^.*/dpsight-[0-9]+(/(?:python/dpsight/.*|python/sitecustomize\.py|` +
		`experiments/dpsight_experiments/.*|phantom_\w+\.py))$`)
)

// A cleaner takes out of text what says where it was recorded. Its UUIDs are numbered in the order in which they are
// met.
type cleaner struct {
	uuids map[string]string
	files map[string]string // of a run: the replacement, and the file
}

func newCleaner() *cleaner { return &cleaner{map[string]string{}, map[string]string{}} }

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

// frame cleans a text of a stack's frame. A file is replaced by its place in its environment, or by its name. Any
// other text is cleaned as text. Two files with one name stay two.
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
	if strings.HasPrefix(u, "00000000-0000-0000-0000-") { // of an earlier pass
		return u
	}
	if c.uuids[u] == "" {
		c.uuids[u] = fmt.Sprintf("00000000-0000-0000-0000-%012x", len(c.uuids))
	}
	return c.uuids[u]
}

// json cleans every string in a document and changes nothing else. Strings are cleaned after decoding: behind an
// escaped line end, the beginning of a path would be missed.
func (c *cleaner) json(doc []byte, host string) ([]byte, error) {
	return literally(doc, func(s string) string { return c.text(s, host) })
}

// literally is a document with every string in it replaced.
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
