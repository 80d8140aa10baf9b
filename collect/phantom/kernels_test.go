package phantom

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// kernelsFor chooses the kernels of a torch build that run on a device. The cases follow the rules of CUDA's
// programming guide for binary, PTX, architecture-specific and family-specific code.
func TestKernelsFor(t *testing.T) {
	const wheel = "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"
	for _, test := range []struct {
		list, profile string
		ptx, binary   int
	}{
		{wheel, "h200", 90, 90},
		{wheel, "a100-40", 80, 80},
		// The wheel has no kernels built for this device, so the device reports the previous generation's kernels.
		{wheel, "l40s", 86, 86},
		{wheel, "rtx-4090", 86, 86},
		{wheel, "t4", 75, 75},
		{"sm_80 sm_86 compute_89", "l40s", 86, 86},
		{"sm_60 compute_70", "t4", 70, 75},
		{"sm_60 compute_60 compute_70 compute_80", "h100", 80, 90},
		{"sm_90a compute_80", "h100", 90, 90},
		{"sm_80 compute_90a", "h100", 90, 90},
		{"sm_80f", "l40s", 80, 80},
		{"", "t4", 75, 75},
	} {
		profile, err := LoadProfile(test.profile)
		if err != nil {
			t.Fatal(err)
		}
		got, err := torchInstall{architectures: architecturesOf(t, test.list)}.kernelsFor(profile)
		if err != nil || got != (kernelVersion{test.ptx, test.binary}) {
			t.Errorf("%s on %q: got %+v, %v", test.profile, test.list, got, err)
		}
	}
	for _, test := range []struct{ list, profile string }{
		{"sm_80 sm_86 sm_90", "t4"},
		{"sm_86 sm_90", "a100-80"},
		{"sm_75 sm_80 compute_100", "h100"},
		{"sm_75 compute_80a sm_90a sm_80a", "l40s"},
		{"sm_120f sm_90", "a100-40"},
	} {
		profile, err := LoadProfile(test.profile)
		if err != nil {
			t.Fatal(err)
		}
		_, err = torchInstall{version: "9.9.0+cu130", architectures: architecturesOf(t, test.list)}.kernelsFor(profile)
		if !errors.Is(err, ErrNoKernels) {
			t.Errorf("%s on %q: got %v", test.profile, test.list, err)
			continue
		}
		for _, want := range []string{"9.9.0+cu130", test.list, profile.Name} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not name %q", err, want)
			}
		}
	}
}

func architecturesOf(t *testing.T, list string) []architecture {
	t.Helper()
	path := filepath.Join(t.TempDir(), "libtorch_python.so")
	write(t, path, "\x7fELF\x00CUDA\x00"+list+"\x00tail", 0o644)
	return readArchitectures(path)
}

func TestReadArchitectures(t *testing.T) {
	for text, want := range map[string][]string{
		"a\x00sm_75 sm_90a compute_120f\x00b":        {"sm_75", "sm_90a", "compute_120f"},
		"a\x00compute_90\x00b":                       {"compute_90"},
		"a\x00sm_80\x00b\x00sm_80\x00":               {"sm_80"},
		"a\x00sm_80\x00b\x00sm_80 sm_90\x00":         nil, // two different lists: dpsight cannot know which is right
		"a\x00sm_80 is required\x00sm_\x00sm_8x\x00": nil,
		"a\x00sm_80": nil,
		"":           nil,
	} {
		path := filepath.Join(t.TempDir(), "lib.so")
		write(t, path, text, 0o644)
		var got []string
		for _, a := range readArchitectures(path) {
			got = append(got, a.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %v", text, got)
		}
	}
	if readArchitectures(filepath.Join(t.TempDir(), "absent.so")) != nil {
		t.Error("a library that is not there has kernels")
	}
}

func TestBuildRefusesADeviceWithoutKernels(t *testing.T) {
	python := completeFakeTorch(t)
	write(t, filepath.Join(filepath.Dir(python), "torch", "lib", "libtorch_python.so"), "\x00sm_80 sm_90\x00", 0o644)
	profile, err := LoadProfile("t4")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Build(t.Context(), Options{Python: python, CacheDir: t.TempDir(), Profile: profile,
		Compiler: "no-such-compiler"})
	if !errors.Is(err, ErrNoKernels) || !strings.Contains(err.Error(), "Tesla T4 has compute capability 7.5") {
		t.Errorf("got %v", err)
	}
	// The same torch has kernels for the default device, so Build fails later, for lack of a compiler.
	_, err = Build(t.Context(), Options{Python: python, CacheDir: t.TempDir(), Compiler: "no-such-compiler"})
	if !errors.Is(err, ErrNoCompiler) {
		t.Errorf("got %v", err)
	}
}
