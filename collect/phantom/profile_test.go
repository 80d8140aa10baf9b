package phantom

import (
	"slices"
	"strings"
	"testing"
)

func TestLoadProfile(t *testing.T) {
	for _, name := range Profiles() {
		profile, err := LoadProfile(name)
		if err != nil {
			t.Fatal(err)
		}
		if profile.ID != name {
			t.Errorf("the file of profile %q has the id %q", name, profile.ID)
		}
	}
	if !slices.Contains(Profiles(), DefaultProfile) {
		t.Errorf("no profile %q among %v", DefaultProfile, Profiles())
	}
}

func TestUnknownProfileNamesThoseKnown(t *testing.T) {
	_, err := LoadProfile("h2000")
	if err == nil || !strings.Contains(err.Error(), `"h2000"`) || !strings.Contains(err.Error(), "h200") {
		t.Fatalf("got %v", err)
	}
	if _, err := LoadProfile("../profiles/h200"); err == nil {
		t.Fatal("a path was taken for a name")
	}
}

func TestParseProfileRefuses(t *testing.T) {
	good, err := profileFiles.ReadFile("profiles/h200.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, from, to, want string }{
		{"schema", ProfileSchema, "dpsight.phantom.profile/2", "schema"},
		{"unknown field", `"id"`, `"colour": "red", "id"`, "colour"},
		{"missing property", `"warp_size": 32,`, ``, "warp_size"},
		{"unknown property", `"warp_size"`, `"warps": 1, "warp_size"`, "warps"},
		{"negative", `"ecc": 1`, `"ecc": -1`, "ecc"},
		{"zero", `"multiprocessors": 132`, `"multiprocessors": 0`, "multiprocessors"},
		{"not a number", `"ecc": 1`, `"ecc": "yes"`, "properties"},
		{"context too large", `"context_bytes": 552402944`, `"context_bytes": 552402944000`, "context_bytes"},
		{"no source", `"source": "read`, `"source": "", "_": "`, "_"},
		{"quote in name", `"NVIDIA H200"`, `"NVIDIA \"H200\""`, "name"},
	} {
		text := strings.Replace(string(good), test.from, test.to, 1)
		if text == string(good) {
			t.Fatalf("%s: nothing was replaced", test.name)
		}
		if _, err := ParseProfile([]byte(text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v", test.name, err)
		}
	}
}

func TestEncodeHasEachPropertyOnce(t *testing.T) {
	profile, err := LoadProfile("h200")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(profile.encode())), "\n")
	if len(lines) != 1+len(PropertyNames()) || lines[0] != "name=NVIDIA H200" {
		t.Fatalf("got %d lines, the first %q", len(lines), lines[0])
	}
	if !slices.Contains(lines, "total_memory_bytes=150109880320") {
		t.Error("no line for total_memory_bytes")
	}
}
