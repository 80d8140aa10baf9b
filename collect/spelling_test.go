package collect

import (
	"errors"
	"testing"
)

// A device that there is not is answered with what it may have been meant for, and one that nobody can have meant with
// none.
func TestMisspeltDevices(t *testing.T) {
	const known = "known: a100-40, a100-80, h100, h200, l40s, rtx-4090, t4"
	for device, want := range map[string]struct{ collect, predict string }{
		"h200": {"did you mean --device phantom:h200? " + knownDevices, ""},
		"H200": {"did you mean --device phantom:h200? " + knownDevices, "did you mean --device h200? " +
			known},
		"phantom:H200": {"did you mean --device phantom:h200?", "did you mean --device h200? " + known},
		"Phantom:h200": {"did you mean --device phantom:h200? " + knownDevices, "did you mean --device h200? " +
			known},
		"phantom-h200": {"did you mean --device phantom:h200? " + knownDevices, "did you mean --device h200? " +
			known},
		"phantm/t4": {"did you mean --device phantom:t4? " + knownDevices, "did you mean --device t4? " + known},
		"RTX 4090": {"did you mean --device phantom:rtx-4090? " + knownDevices,
			"did you mean --device rtx-4090? " + known},
		"a100-80gb": {"did you mean --device phantom:a100-80? " + knownDevices, "did you mean --device a100-80? " +
			known},
		"phantom:a100": {"did you mean --device phantom:a100-40 or phantom:a100-80?",
			"did you mean --device a100-40 or a100-80? " + known},
		"phantom:b200": {"name a profile as in --device phantom:h200", known},
		"Phantom":      {"did you mean --device phantom? " + knownDevices, known},
		"cuda:1": {"did you mean --device cuda? CUDA_VISIBLE_DEVICES=1 chooses among several GPUs; " +
			knownDevices, "name the device to predict for: " + known[len("known: "):]},
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
