package collect

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/collect/phantom"
	"github.com/dpsight/dpsight/schemas/near"
)

// knownDevices are the words of collect's --device.
const knownDevices = "known: auto, cuda, phantom, phantom:PROFILE"

// didYouMean asks whether a device that there is not was meant to be one that there is; it is empty where none comes to
// mind. Before the names of profiles stands prefix; without one, nothing but a profile can be meant.
func didYouMean(device, prefix string) string {
	words := meantProfiles(device)
	for i := range words {
		words[i] = prefix + words[i]
	}
	word, gpu, numbered := strings.Cut(strings.ToLower(device), ":")
	switch {
	case len(words) > 0 || prefix == "":
	case numbered && word == DeviceCUDA:
		return "did you mean --device cuda? CUDA_VISIBLE_DEVICES=" + gpu + " chooses among several GPUs"
	case word == "gpu":
		words = []string{DeviceCUDA}
	default:
		if guess := near.Word(word, []string{DeviceAuto, DeviceCUDA, DevicePhantom}); guess != "" {
			words = []string{guess}
		}
	}
	if len(words) == 0 {
		return ""
	}
	return "did you mean --device " + strings.Join(words, " or ") + "?"
}

// meantScript asks whether a script that there is not was meant to be one of its folder.
func meantScript(dir, script string) string {
	folder := inFolder(dir, filepath.Dir(script))
	paths, err := filepath.Glob(filepath.Join(folder, "*"+filepath.Ext(script)))
	if err != nil {
		return ""
	}
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = filepath.Base(path)
	}
	if meant := near.Word(filepath.Base(script), names); meant != "" {
		return "did you mean " + filepath.Join(filepath.Dir(script), meant) + "?"
	}
	return ""
}

// beside puts what is known behind a question.
func beside(question, known string) string {
	if question == "" || strings.HasSuffix(question, "?") {
		return strings.TrimSpace(question + " " + known)
	}
	return question + "; " + known
}

// meantProfiles are the profiles that a name can be meant for: the one that it is but for case and punctuation, with
// whatever is written around it, or those that it is a part of, as 4090 or a100. A letter more or less is often another
// device's name: b200 is no h200.
func meantProfiles(device string) (names []string) {
	word := plain(device)
	for _, name := range phantom.Profiles() {
		if strings.Contains(word, plain(name)) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		return names
	}
	// What stands before the last colon, slash or sign of equality says that it is a phantom's.
	word = plain(device[strings.LastIndexAny(device, ":/=")+1:])
	return slices.DeleteFunc(phantom.Profiles(), func(name string) bool {
		return len(word) < 3 || !strings.Contains(plain(name), word)
	})
}

// plain has the letters and digits of a name, in lower case.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(name))
}
