package collect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFeaturesOfAnInterpreter checks what checkFeatures makes of an interpreter's answer to its probes. Shell scripts
// stand for the interpreters.
func TestFeaturesOfAnInterpreter(t *testing.T) {
	for name, c := range map[string]struct {
		script     string
		ok, needed bool
		detail     string
	}{
		"all work": {script: `echo noise of a sitecustomize
			echo 'dpsight-probe:[{"name": "a", "ok": true, "needed": true}, {"name": "b", "ok": true}]'`,
			ok: true, detail: "2 of 2 work"},
		"one is absent": {script: `echo 'dpsight-probe:[{"name": "a", "ok": true, "needed": true}, {"name": "b"}]'`,
			detail: "1 of 2 work"},
		"one is missing": {script: `echo 'dpsight-probe:[{"name": "a", "needed": true}, {"name": "b", "ok": true}]'`,
			needed: true, detail: "1 of 2 work"},
		"torch cannot be imported": {script: `echo "Traceback (most recent call last):" >&2
			echo "ImportError: libcudart.so.13" >&2; exit 1`,
			detail: "the probes did not run: exit status 1: ImportError: libcudart.so.13"},
		"no answer": {script: "true", detail: "the answer of the probes: EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			python := filepath.Join(t.TempDir(), "python")
			if err := os.WriteFile(python, []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			features, got := checkFeatures(t.Context(), python, true)
			if got.OK != c.ok || got.Needed != c.needed || got.Detail != c.detail || got.OK != (got.Hint == "") {
				t.Errorf("%+v", got)
			}
			if tried := strings.HasSuffix(c.detail, "work"); tried != (len(features) == 2) {
				t.Errorf("%+v", features)
			}
		})
	}
}

func TestNoFeaturesWithoutTorch(t *testing.T) {
	features, got := checkFeatures(t.Context(), "/no/such/interpreter", false)
	if features != nil || got.OK || got.Needed || got.Hint == "" {
		t.Errorf("%+v, %+v", features, got)
	}
}
