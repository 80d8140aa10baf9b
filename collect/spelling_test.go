package collect

import (
	"errors"
	"strings"
	"testing"
)

// If --device names an unknown device, the hint suggests the device with the most similar name. If no name is similar,
// the hint suggests none.
func TestMisspeltDevices(t *testing.T) {
	const known = "known: a100-40, a100-80, h100, h200, l40s, rtx-4090, t4. " + anyOther
	for device, want := range map[string]struct{ collect, predict string }{
		"h200": {"did you mean --device phantom:h200? " + knownDevices, ""},
		"H200": {"did you mean --device phantom:h200? " + knownDevices, ""},
		"Phantom:h200": {"did you mean --device phantom:h200? " + knownDevices, "did you mean --device h200? " +
			known},
		"phantom-h200": {"did you mean --device phantom:h200? " + knownDevices, "did you mean --device h200? " +
			known},
		"phantm/t4": {"did you mean --device phantom:t4? " + knownDevices, "did you mean --device t4? " + known},
		"RTX 4090":  {"did you mean --device phantom:rtx-4090? " + knownDevices, ""},
		"a100-80gb": {"did you mean --device phantom:a100-80? " + knownDevices, ""},
		"rtx 4090 of mine": {"did you mean --device phantom:rtx-4090? " + knownDevices,
			"did you mean --device rtx-4090? " + known},
		"h201":            {"did you mean --device phantom:h200? " + knownDevices, "did you mean --device h200? " + known},
		"phantom:rxt4090": {"did you mean --device phantom:rtx-4090?", "did you mean --device rtx-4090? " + known},
		"rtx-3090":        {knownDevices, known},
		"phantom:a100": {"did you mean --device phantom:a100-40 or phantom:a100-80?",
			"did you mean --device a100-40 or a100-80? " + known},
		"phantom:b200": {"name a profile as in --device phantom:h200", known},
		"Phantom":      {"did you mean --device phantom? " + knownDevices, known},
		"cuda:1": {"did you mean --device cuda? CUDA_VISIBLE_DEVICES=1 chooses among several GPUs; " +
			knownDevices, "name the device to predict for: " + strings.TrimSuffix(known[len("known: "):], ". "+anyOther)},
		"tpu":            {knownDevices, known},
		"phantom:x":      {"name a profile as in --device phantom:h200", known},
		"the whole farm": {knownDevices, known},
	} {
		_, err := openMachine(device, nil)
		var usage *UsageError
		if !errors.As(err, &usage) || usage.Hint() != want.collect {
			t.Errorf("collect --device %s: %v, %+v", device, err, usage)
		}
		_, err = OpenPhantom(device, PhantomOptions{})
		if want.predict == "" {
			if err != nil {
				t.Errorf("predict --device %s: %v", device, err)
			}
		} else if usage = nil; !errors.As(err, &usage) || usage.Hint() != want.predict {
			t.Errorf("predict --device %s: %v, %+v", device, err, usage)
		}
	}
}

// --device accepts the common names of a device, unless several devices have the name.
func TestNamesOfDevices(t *testing.T) {
	for _, test := range []struct{ profile, names string }{
		{"h100", "h100, H100, H100-80GB, h100 80g, NVIDIA H100 80GB HBM3, nvidia-h100"},
		{"h200", "h200, H200, phantom:H200, NVIDIA H200"},
		{"a100-40", "A100-40G, a100_40gb, NVIDIA A100-SXM4-40GB, phantom:A100-40GiB"},
		{"a100-80", "A100-80G, a10080, A100-SXM4-80GB"},
		{"rtx-4090", "rtx4090, RTX 4090, 4090, NVIDIA GeForce RTX 4090, GeForce RTX 4090"},
		{"l40s", "L40S, NVIDIA L40S"},
		{"t4", "T4, Tesla T4, NVIDIA T4"},
		{"", "A100, A100-SXM4, NVIDIA, rtx, L40, 100, gh200, b200, 409, 200, T4-x, T4G"},
	} {
		for name := range strings.SplitSeq(test.names, ", ") {
			m, err := OpenPhantom(name, PhantomOptions{})
			if test.profile == "" {
				if err == nil {
					t.Errorf("%s is taken for %s", name, m.Profile())
				}
			} else if err != nil || m.Profile() != test.profile {
				t.Errorf("%s: %v, want %s", name, err, test.profile)
			}
		}
	}
	m, err := openMachine("phantom:A100-80GB", nil)
	if err != nil || m.Profile() != "a100-80" {
		t.Errorf("phantom:A100-80GB: %v", err)
	}
}
