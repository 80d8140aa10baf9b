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
	// Go's regular expressions have no lookbehind. The expression paths matches the character before a path too, and
	// the replacement puts this character back.
	paths    = regexp.MustCompile(`(^|[^\w./])/(?:[\w.+@-]+/)+([\w.+@-]*)`)
	literals = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
)

// analyze recognises frames of a stack by the end of the file's path. A cleaner keeps the ends of paths that are listed
// here. A file with a listed end belongs to a Python package or to Python itself, or collect writes it into a numbered
// folder for each run.
var (
	packaged  = regexp.MustCompile(`^.*(/(?:site|dist)-packages/.*)$`)
	ownPython = regexp.MustCompile(`^.*(/lib/python3\.[0-9]+/.*)$`)
	collected = regexp.MustCompile(`^.*/dpsight-[0-9]+(/(?:python/dpsight/.*|python/sitecustomize\.py|` +
		`experiments/dpsight_experiments/.*|phantom_\w+\.py))$`)
)

// A cleaner removes from a text everything that tells where a run was recorded. A cleaner numbers UUIDs in the order in
// which it meets them.
type cleaner struct {
	uuids map[string]string
	files map[string]string // files of one run, by their replacements
}

func newCleaner() *cleaner { return &cleaner{map[string]string{}, map[string]string{}} }

// text returns s without UUIDs and without the host's name. Of each path only the last part stays.
func (c *cleaner) text(s, host string) string {
	s = uuids.ReplaceAllStringFunc(s, c.uuid)
	s = paths.ReplaceAllString(s, "$1$2")
	if host != "" {
		// Only whole words are replaced: a host called vm must not change nvml into ngpu-hostl.
		s = regexp.MustCompile(`\b`+regexp.QuoteMeta(host)+`\b`).ReplaceAllLiteralString(s, hostName)
	}
	return s
}

// frame cleans one string of a frame in a recorded stack. A file's path becomes its path in its environment, or its
// name. A string that is no path is cleaned as text. Two files with the same name get two different replacements.
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
	if strings.HasPrefix(u, "00000000-0000-0000-0000-") { // an earlier pass has replaced this UUID
		return u
	}
	if c.uuids[u] == "" {
		c.uuids[u] = fmt.Sprintf("00000000-0000-0000-0000-%012x", len(c.uuids))
	}
	return c.uuids[u]
}

// json cleans every string in a JSON document and changes nothing else. json decodes the strings first. In encoded
// JSON, a path after an escaped line end would not be recognised.
func (c *cleaner) json(doc []byte, host string) ([]byte, error) {
	return literally(doc, func(s string) string { return c.text(s, host) })
}

// literally returns a JSON document in which replace has replaced each string.
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
