package collect

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/collect/phantom"
	"github.com/dpsight/dpsight/schemas/near"
)

// knownDevices lists the words that collect's --device accepts.
const knownDevices = "known: auto, cuda, phantom, phantom:PROFILE"

// anyOther tells how to predict for a device without a profile.
const anyOther = "For any other device, give its memory, as in --gpu-memory 24GiB"

// didYouMean returns a question that suggests existing names for an unknown device, or "" if no name is similar. The
// prefix stands before names of profiles. If it is "", only a profile can be meant.
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

// meantScript returns the script in the same folder that a missing script's name probably means.
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

// beside appends additional information to a question.
func beside(question, known string) string {
	if question == "" || strings.HasSuffix(question, "?") {
		return strings.TrimSpace(question + " " + known)
	}
	return question + "; " + known
}

// profileCalled returns the profile of a device, by its id or by a common name such as H100, rtx4090, 4090, A100-80G or
// "NVIDIA H100 80GB HBM3". profileCalled returns "" if no device has the name, or if several have.
func profileCalled(device string) string {
	called := calledName(device)
	found := slices.DeleteFunc(phantom.Profiles(), func(id string) bool {
		return called != calledName(id) && "rtx"+called != calledName(id) && !slices.Contains(productNames(id), called)
	})
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

var (
	makersWords = regexp.MustCompile(`^(nvidia|geforce|tesla)+`)
	memoryUnit  = regexp.MustCompile(`([0-9]{2})(gib|gb|g)$`)
)

// calledName returns the distinctive part of a device's name, without its maker's words and the unit of its memory.
func calledName(device string) string {
	return memoryUnit.ReplaceAllString(makersWords.ReplaceAllString(plain(device), ""), "$1")
}

// productNames returns the beginnings of a product's name that end in a number, such as h10080 for "NVIDIA H100 80GB
// HBM3".
func productNames(id string) (names []string) {
	profile, err := phantom.LoadProfile(id)
	if err != nil {
		panic(err) // cannot fail, since a test loads all profiles
	}
	begun := ""
	for _, word := range strings.FieldsFunc(profile.Name, func(r rune) bool { return r == ' ' || r == '-' }) {
		if begun += word; strings.ContainsAny(word, "0123456789") {
			names = append(names, calledName(begun))
		}
	}
	return names
}

// otherDevices are names of real devices that differ from a profile's name in one letter.
var otherDevices = []string{"t4g", "b100", "v100", "p100", "b200", "h800", "h20", "rtx3090", "rtx4080", "rtx4070",
	"rtx5090"}

// meantProfiles returns the profiles that a mistyped name may mean: those whose names contain it, as in "a100";
func meantProfiles(device string) []string {
	all := plain(device)
	// The text up to the last colon, slash or equals sign only says that the device is a phantom GPU.
	word := plain(device[strings.LastIndexAny(device, ":/=")+1:])
	for _, meant := range []func(name string) bool{
		func(name string) bool { return len(word) > 2 && strings.Contains(name, word) },
		func(name string) bool {
			return len(word) > 3 && near.Distance(word, name) == 1 && !slices.Contains(otherDevices, word)
		},
		func(name string) bool { return strings.Contains(all, name) },
	} {
		names := slices.DeleteFunc(phantom.Profiles(), func(id string) bool { return !meant(plain(id)) })
		if len(names) > 0 {
			return names
		}
	}
	return nil
}

// plain returns the letters and digits of a name, in lower case.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(name))
}
