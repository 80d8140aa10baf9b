package schemas

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestConfig(t *testing.T) {
	t.Chdir(t.TempDir())
	none, err := FindConfig("")
	if err != nil || len(none.Check.Thresholds) != 0 {
		t.Fatalf("without a file: %+v, %v", none, err)
	}
	if _, err := FindConfig("other.yaml"); err == nil {
		t.Error("a file that is named and not there is no error")
	}
	const text = `# what CI holds
check:
  floor: 2MiB
  experiments:
    ghost*:
      peak: 1.02
  thresholds:
    peak: 1.05
    category:*: 5%
`
	if err := os.WriteFile(ConfigFile, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := FindConfig("")
	if err != nil {
		t.Fatal(err)
	}
	want := []ConfigThreshold{{"", "peak", ConfigValue{"1.05", "dpsight.yaml:8"}},
		{"", "category:*", ConfigValue{"5%", "dpsight.yaml:9"}}, {"ghost*", "peak", ConfigValue{"1.02", "dpsight.yaml:6"}}}
	if c.Check.Floor != (ConfigValue{"2MiB", "dpsight.yaml:3"}) || len(c.Check.Thresholds) != len(want) {
		t.Fatalf("%+v", c)
	}
	for i := range want {
		if c.Check.Thresholds[i] != want[i] {
			t.Errorf("%+v, want %+v", c.Check.Thresholds[i], want[i])
		}
	}
}

func TestConfigIsStrict(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.yaml")
	for text, said := range map[string]string{
		"":                             "",
		"# nothing":                    "",
		"check:":                       "",
		"check: {thresholds: }":        "",
		"chek: {}":                     `x.yaml:1: there is no key "chek" here; did you mean check?`,
		"check:\n  treshold: {}":       `x.yaml:2: there is no key "treshold" here; did you mean thresholds?`,
		"check:\n  nothing: {}":        `x.yaml:2: there is no key "nothing" here; there are experiments, floor, thresholds`,
		"check: []":                    "x.yaml:1: a mapping of names to values is wanted here",
		"check:\n  floor: [1]":         "x.yaml:2: a single value is wanted here",
		"check:\n  thresholds: 1.05":   "x.yaml:2: a mapping of names to values is wanted here",
		"check:\n  floor: 1\n  floor:": `x.yaml:3: "floor" is no name, or stands here twice`,
		"check: {":                     "x.yaml: ",
		"a: &a [*a]":                   `x.yaml:1: there is no key "a"`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := FindConfig(path)
		if said == "" && err != nil || said != "" && (err == nil || !strings.Contains(err.Error(), said)) {
			t.Errorf("%q: %v, want %q", text, err, said)
		}
	}
}
