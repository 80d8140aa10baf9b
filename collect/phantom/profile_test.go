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
		// Every size that a device reports is a multiple of 64 KiB and no whole number of GiB. A nominal size or a
		// typing error would not pass both checks.
		for _, property := range []string{"total_memory_bytes", "context_bytes"} {
			if bytes := profile.Properties[property]; bytes%(64<<10) != 0 || bytes%(1<<30) == 0 {
				t.Errorf("%s of profile %q is %d, which no device reports", property, name, bytes)
			}
		}
	}
	if want := []string{"a100-40", "a100-80", "h100", "h200", "l40s", "rtx-4090", "t4"}; !slices.Equal(Profiles(),
		want) {
		t.Errorf("profiles %v, not %v", Profiles(), want)
	}
	if !slices.Contains(Profiles(), DefaultProfile) {
		t.Errorf("no profile %q among %v", DefaultProfile, Profiles())
	}
}

// NVIDIA publishes these properties per compute capability. If two profiles of one compute capability disagree, one of
// them has a typing error.
func TestProfilesOfOneArchitectureAgree(t *testing.T) {
	first := map[int64]Profile{}
	for _, name := range Profiles() {
		profile, err := LoadProfile(name)
		if err != nil {
			t.Fatal(err)
		}
		capability := 10*profile.Properties["compute_major"] + profile.Properties["compute_minor"]
		other, seen := first[capability]
		if !seen {
			first[capability] = profile
			continue
		}
		for _, property := range []string{
			"warp_size", "max_threads_per_block", "max_threads_per_multiprocessor", "max_blocks_per_multiprocessor",
			"shared_memory_per_block_bytes", "shared_memory_per_block_optin_bytes",
			"shared_memory_per_multiprocessor_bytes",
			"reserved_shared_memory_per_block_bytes", "registers_per_block", "registers_per_multiprocessor",
			"constant_memory_bytes",
		} {
			if profile.Properties[property] != other.Properties[property] {
				t.Errorf("%s of %s is %d, of %s %d", property, name, profile.Properties[property], other.ID,
					other.Properties[property])
			}
		}
	}
	if len(first) != 4 {
		t.Errorf("compute capabilities of %d kinds, not of 4", len(first))
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
	const checked = "\"checked\": true,\n  \"checked_torch\": \"2.11.0\""
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
		{"unknown property with a source", `"source"`, `"sources": {"ecc": "read off", "warps": "read off"}, "source"`,
			"warps"},
		{"empty source of a property", `"source"`, `"sources": {"ecc": ""}, "source"`, "ecc"},
		{"unknown property assumed", checked, `"assumed": {"warps": "a guess"}`, "warps"},
		{"assumed and sourced", checked, `"assumed": {"ecc": "a guess"}, "sources": {"ecc": "read off"}`, "ecc"},
		{"assumed though checked", `"source"`, `"assumed": {"ecc": "a guess"}, "source"`, "checked"},
		{"unknown addresses", `"addresses": "h200"`, `"addresses": "h100"`, "addresses"},
		{"clusters without a source", `"clusters_source": "fitted`, `"clusters_source": "", "_": "`, "_"},
		{"clusters of one that are not the multiprocessors", `"1": 132`, `"1": 131`, "clusters"},
		{"more clusters than go", `"5": 22`, `"5": 27`, "clusters"},
		{"more of a larger size", `"5": 22`, `"5": 14`, "clusters"},
		{"a size that CUDA does not have", `"16": 7`, `"17": 7`, "clusters"},
		{"withheld without a source", `"withheld_source"`, `"clusters_source"`, "withheld_source"},
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
	lines := strings.Split(strings.TrimSpace(string(profile.encode(kernelVersion{ptx: 80, binary: 90}))), "\n")
	if !slices.Contains(lines, "kernel_ptx_version=80") || !slices.Contains(lines, "kernel_binary_version=90") {
		t.Error("the kernels' version is missing")
	}
	if !slices.Contains(lines, "clusters=1:132,2:66,3:39,4:30,5:22,8:15,16:7") {
		t.Error("no line for the clusters")
	}
	if !slices.Contains(lines, "withheld=1") {
		t.Error("no line for the engines that cuDNN withholds")
	}
	if len(lines) != 6+len(PropertyNames()) || lines[0] != "name=NVIDIA H200" {
		t.Fatalf("got %d lines, the first %q", len(lines), lines[0])
	}
	if !slices.Contains(lines, "total_memory_bytes=150109880320") {
		t.Error("no line for total_memory_bytes")
	}
}
