package modelnames

import (
	"maps"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/schemas/spool"
)

// unlabelled returns the root module of a model without a label. The agent writes such a root if no earlier model has
// the same names.
func unlabelled(class string) spool.ModuleInfo { return spool.ModuleInfo{Class: class, First: true} }

// labelled returns the root module of a model to which the agent gave a label.
func labelled(label, class string) spool.ModuleInfo {
	return spool.ModuleInfo{Path: label, Class: class, First: true}
}

// part returns a module that belongs to the model of the preceding root module.
func part(path string) spool.ModuleInfo { return spool.ModuleInfo{Path: path, Class: "Linear"} }

// encoder returns a module whose path equals its class, and which is no root module.
func encoder() spool.ModuleInfo { return spool.ModuleInfo{Path: "Encoder", Class: "Encoder"} }

func withParameters(root spool.ModuleInfo) spool.ModuleInfo {
	root.ParameterBytes = 8
	return root
}

// If several models have parts of the same names, each of these models gets its class as a label, even the model that
// was called first. All other models keep their names.
func TestDisambiguate(t *testing.T) {
	for name, c := range map[string]struct {
		modules []spool.ModuleInfo
		paths   map[string]string // the path of each module, without and with labels
		tensors map[string]string // the name of each tensor, without and with labels
	}{
		"a GAN": {
			modules: []spool.ModuleInfo{unlabelled("Discriminator"), part("main"), part("main.0"), unlabelled("Loss"),
				labelled("Generator", "Generator"), part("Generator.main"), part("Generator.main.0")},
			paths: map[string]string{"": "", "main": "Discriminator.main", "main.0": "Discriminator.main.0",
				"Generator": "Generator", "Generator.main": "Generator.main", "Generator.main.0": "Generator.main.0"},
			tensors: map[string]string{"main.0.weight": "Discriminator.main.0.weight",
				"main.0.weight.exp_avg": "Discriminator.main.0.weight.exp_avg",
				"Generator.main.0.bias": "Generator.main.0.bias",
				"ConvolutionBackward0":  "ConvolutionBackward0", "mainly.0": "mainly.0", "": ""},
		},
		"a student and two teachers": {
			modules: []spool.ModuleInfo{unlabelled("Net"), part("up"), unlabelled("Head"), part("0"),
				labelled("Net", "Net"), part("Net.up"), labelled("Net#2", "Net"), part("Net#2.up")},
			paths: map[string]string{"": "", "up": "Net#1.up", "0": "0", "Net": "Net#2", "Net.up": "Net#2.up",
				"Net#2": "Net#3", "Net#2.up": "Net#3.up"},
			tensors: map[string]string{"up.weight": "Net#1.up.weight", "shift": "Net#1.shift", "alone": "alone",
				"0.weight": "0.weight", "Net.up.weight": "Net#2.up.weight", "Net.shift": "Net#2.shift",
				"Net#2.up.weight": "Net#3.up.weight"},
		},
		"models of other names": {
			modules: []spool.ModuleInfo{unlabelled("A"), part("up"), unlabelled("B"), part("down")},
			paths:   map[string]string{"": "", "up": "up", "down": "down"},
			tensors: map[string]string{"up.weight": "up.weight", "down.weight": "down.weight"},
		},
		"a part that is called like its class": {
			modules: []spool.ModuleInfo{unlabelled("Gan"), encoder(), part("Encoder.main"), part("other")},
			paths:   map[string]string{"Encoder": "Encoder", "Encoder.main": "Encoder.main", "other": "other"},
			tensors: map[string]string{"other.weight": "other.weight"},
		},
		"a part that is called like its class, with names that its model has": {
			modules: []spool.ModuleInfo{unlabelled("Net"), part("fc"), encoder(), part("Encoder.fc"), part("head")},
			paths:   map[string]string{"fc": "fc", "Encoder.fc": "Encoder.fc", "head": "head"},
			tensors: map[string]string{"fc.weight": "fc.weight"},
		},
		"a last part that is called like its class, with names that its model has": {
			modules: []spool.ModuleInfo{unlabelled("Net"), part("fc"), encoder(), part("Encoder.fc")},
			paths:   map[string]string{"fc": "fc", "Encoder": "Encoder", "Encoder.fc": "Encoder.fc"},
			tensors: map[string]string{"fc.weight": "fc.weight", "Encoder.fc.weight": "Encoder.fc.weight"},
		},
		"the same before another model": {
			modules: []spool.ModuleInfo{unlabelled("Net"), part("fc"), encoder(), part("Encoder.fc"),
				unlabelled("Loss")},
			paths:   map[string]string{"fc": "fc", "Encoder.fc": "Encoder.fc"},
			tensors: map[string]string{"fc.weight": "fc.weight"},
		},
		"a module that a model calls and that is no part of it": {
			modules: []spool.ModuleInfo{unlabelled("Net"), part("fc"), labelled("Encoder", "Encoder"), part("up")},
			paths:   map[string]string{"fc": "fc", "Encoder": "Encoder", "up": "up"},
			tensors: map[string]string{"fc.weight": "fc.weight"},
		},
		"two models without parts, and a loss": {
			modules: []spool.ModuleInfo{withParameters(unlabelled("Linear")), unlabelled("Loss"),
				withParameters(labelled("Linear", "Linear"))},
			paths: map[string]string{"": "", "Linear": "Linear#2"},
			tensors: map[string]string{"weight": "Linear#1.weight", "weight.exp_avg": "Linear#1.weight.exp_avg",
				"Linear.weight": "Linear#2.weight", "Linear.weight.exp_avg": "Linear#2.weight.exp_avg",
				"bias": "bias"},
		},
		"trials of two models without parts": {
			modules: []spool.ModuleInfo{withParameters(unlabelled("Linear")), labelled("Linear", "Linear"),
				withParameters(unlabelled("Linear")), labelled("Linear", "Linear")},
			paths:   map[string]string{"": "", "Linear": "Linear#2"},
			tensors: map[string]string{"weight": "Linear#1.weight", "Linear.weight": "Linear#2.weight"},
		},
		"root parameters of one name, and parts of others": {
			modules: []spool.ModuleInfo{withParameters(unlabelled("Student")), part("up"),
				labelled("Teacher", "Teacher"), part("Teacher.down")},
			paths: map[string]string{"up": "Student.up", "Teacher.down": "Teacher.down"},
			tensors: map[string]string{"scale": "Student.scale", "up.weight": "Student.up.weight",
				"Teacher.scale": "Teacher.scale"},
		},
		"root parameters that may be either of two models'": {
			modules: []spool.ModuleInfo{withParameters(unlabelled("Student")), part("up"),
				withParameters(unlabelled("Head")), labelled("Teacher", "Teacher"), part("Teacher.down")},
			paths:   map[string]string{"up": "up", "Teacher.down": "Teacher.down"},
			tensors: map[string]string{"scale": "scale", "Teacher.scale": "Teacher.scale"},
		},
		"root parameters of a model that shares no module with the labelled one": {
			modules: []spool.ModuleInfo{withParameters(unlabelled("Head")), part("up"),
				withParameters(unlabelled("Student")), part("fc"), labelled("Teacher", "Teacher"), part("Teacher.fc")},
			paths: map[string]string{"up": "up", "fc": "Student.fc", "Teacher.fc": "Teacher.fc"},
			tensors: map[string]string{"scale": "Student.scale", "up.weight": "up.weight",
				"Teacher.scale": "Teacher.scale"},
		},
		"a student of another class, and two models of one": {
			modules: []spool.ModuleInfo{unlabelled("Student"), part("fc"), labelled("Net", "Net"), part("Net.fc"),
				labelled("Net#2", "Net"), part("Net#2.fc")},
			paths: map[string]string{"fc": "Student.fc", "Net": "Net#1", "Net.fc": "Net#1.fc", "Net#2": "Net#2",
				"Net#2.fc": "Net#2.fc"},
		},
		"trials, each with a GAN of its own, the last of which ends early": {
			modules: slices.Concat(gan(), gan(), []spool.ModuleInfo{unlabelled("Discriminator"), part("main")}),
			paths: map[string]string{"": "", "main": "Discriminator.main", "Generator": "Generator",
				"Generator.main": "Generator.main"},
			tensors: map[string]string{"main.weight": "Discriminator.main.weight",
				"Generator.main.weight": "Generator.main.weight"},
		},
		"trials, each with a teacher and its student": {
			modules: slices.Concat(twins(), twins(), twins(), []spool.ModuleInfo{unlabelled("Net"), part("else")}),
			paths: map[string]string{"": "", "up": "Net#1.up", "Net": "Net#2", "Net.up": "Net#2.up",
				"else": "else"},
			tensors: map[string]string{"up.weight": "Net#1.up.weight", "Net.up.weight": "Net#2.up.weight",
				"else.weight": "else.weight"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := journal(c.modules, slices.Sorted(maps.Keys(c.tensors)))
			modules, tags, names := slices.Clone(j.Modules), slices.Clone(j.Tags), maps.Clone(j.Names)
			Disambiguate(j)
			for i, m := range j.Modules {
				before := modules[i].Path
				if want, ok := c.paths[before]; ok && m.Path != want {
					t.Errorf("module %q is %q, want %q", before, m.Path, want)
				}
			}
			for i, tag := range j.Tags {
				before := names[tags[i].Name]
				want := c.tensors[before]
				if tag.Kind == spool.TagUser { // names that the script chose stay
					want = before
				}
				if got := j.Names[tag.Name]; got != want {
					t.Errorf("tag of kind %v: %q is %q, want %q", tag.Kind, before, got, want)
				}
			}
		})
	}
}

// journal returns a journal with the given modules. For each name, the journal has tags of the agent and a tag of the
// script. Some modules are in the journal twice, as the agent writes them.
func journal(modules []spool.ModuleInfo, names []string) *spool.Journal {
	j := &spool.Journal{Names: map[uint32]string{}}
	for i, m := range modules {
		m.ID = uint32(i + 1)
		j.Modules = append(j.Modules, m)
	}
	for _, m := range []spool.ModuleInfo{j.Modules[1], j.Modules[len(j.Modules)-1]} {
		m.First = true
		j.Modules = append(j.Modules, m)
	}
	for i, name := range names {
		id := uint32(i + 1)
		j.Names[id] = name
		j.Tags = append(j.Tags, spool.Tag{Kind: spool.TagParameter, Name: id},
			spool.Tag{Kind: spool.TagUser, Name: id, Module: id}, spool.Tag{Kind: spool.TagParameter, Name: id})
	}
	return j
}

// gan returns the modules of the generator and the discriminator of a GAN.
func gan() []spool.ModuleInfo {
	return []spool.ModuleInfo{unlabelled("Discriminator"), part("main"), labelled("Generator", "Generator"),
		part("Generator.main")}
}

// twins returns the modules of two models of the same class.
func twins() []spool.ModuleInfo {
	return []spool.ModuleInfo{unlabelled("Net"), part("up"), labelled("Net", "Net"), part("Net.up")}
}
