package ingest

import (
	"maps"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/schemas/spool"
)

// Models whose names are the same have their classes before them, the one that was called first too; others keep
// theirs.
func TestLabels(t *testing.T) {
	for _, c := range []struct {
		what    string
		modules []spool.ModuleInfo
		names   map[string]string
	}{
		{"a GAN", []spool.ModuleInfo{{Class: "Discriminator"}, {Path: "main", Class: "Sequential"},
			{Path: "main.0", Class: "Conv2d"}, {Class: "Loss"},
			{Path: "Generator", Class: "Generator", First: true}, {Path: "Generator.main", Class: "Sequential"},
			{Path: "Generator.main.0", Class: "Conv2d"}},
			map[string]string{"main": "Discriminator.main", "main.0": "Discriminator.main.0",
				"main.0.weight":         "Discriminator.main.0.weight",
				"main.0.weight.exp_avg": "Discriminator.main.0.weight.exp_avg", "Generator": "Generator",
				"Generator.main.0": "Generator.main.0", "Generator.main.0.bias": "Generator.main.0.bias",
				"ConvolutionBackward0": "ConvolutionBackward0", "mainly.0": "mainly.0", "": ""}},
		{"a student and two teachers", []spool.ModuleInfo{{Class: "Net"}, {Path: "up", Class: "Linear"},
			{Class: "Head"}, {Path: "0", Class: "Linear"},
			{Path: "Net", Class: "Net", First: true}, {Path: "Net.up", Class: "Linear"}, {Path: "Net#2", Class: "Net",
				First: true}, {Path: "Net#2.up", Class: "Linear"}},
			map[string]string{"up": "Net#1.up", "up.weight": "Net#1.up.weight", "shift": "Net#1.shift",
				"alone": "alone", "0": "0", "0.weight": "0.weight", "Net": "Net#2", "Net.up": "Net#2.up",
				"Net.up.weight": "Net#2.up.weight", "Net.shift": "Net#2.shift", "Net#2": "Net#3",
				"Net#2.up": "Net#3.up", "Net#2.up.weight": "Net#3.up.weight"}},
		{"models of other names", []spool.ModuleInfo{{Class: "A"}, {Path: "up", Class: "Linear"}, {Class: "B"},
			{Path: "down", Class: "Linear"}},
			map[string]string{"up": "up", "up.weight": "up.weight", "down.weight": "down.weight"}},
		{"a part that is called like its class", []spool.ModuleInfo{{Class: "Gan"},
			{Path: "Generator", Class: "Generator"}, {Path: "Generator.main", Class: "Linear"},
			{Path: "other", Class: "Linear"}},
			map[string]string{"Generator.main": "Generator.main", "other": "other", "other.weight": "other.weight"}},
		{"a part that is called like its class, with names that its model has", []spool.ModuleInfo{{Class: "Net"},
			{Path: "fc", Class: "Linear"}, {Path: "Encoder", Class: "Encoder"},
			{Path: "Encoder.fc", Class: "Linear"}, {Path: "head", Class: "Linear"}}, map[string]string{"fc": "fc",
			"fc.weight": "fc.weight", "Encoder.fc": "Encoder.fc", "head": "head"}},
		{"a last part that is called like its class, with names that its model has", []spool.ModuleInfo{{Class: "Net"},
			{Path: "fc", Class: "Linear"}, {Path: "Encoder", Class: "Encoder"},
			{Path: "Encoder.fc", Class: "Linear"}}, map[string]string{"fc": "fc", "fc.weight": "fc.weight",
			"Encoder": "Encoder", "Encoder.fc": "Encoder.fc", "Encoder.fc.weight": "Encoder.fc.weight"}},
		{"the same before another model", []spool.ModuleInfo{{Class: "Net"}, {Path: "fc", Class: "Linear"},
			{Path: "Encoder", Class: "Encoder"}, {Path: "Encoder.fc", Class: "Linear"}, {Class: "Loss"}},
			map[string]string{"fc": "fc", "fc.weight": "fc.weight", "Encoder.fc": "Encoder.fc"}},
		{"a module that a model calls, and has not", []spool.ModuleInfo{{Class: "Net"}, {Path: "fc", Class: "Linear"},
			{Path: "Encoder", Class: "Encoder", First: true}, {Path: "up", Class: "Linear"}},
			map[string]string{"fc": "fc", "fc.weight": "fc.weight", "Encoder": "Encoder"}},
		{"two models without parts, and a loss", []spool.ModuleInfo{{Class: "Linear", ParameterBytes: 8},
			{Class: "Loss"}, {Path: "Linear", Class: "Linear", ParameterBytes: 8, First: true}},
			map[string]string{"weight": "Linear#1.weight", "weight.exp_avg": "Linear#1.weight.exp_avg",
				"Linear.weight": "Linear#2.weight", "Linear.weight.exp_avg": "Linear#2.weight.exp_avg",
				"Linear": "Linear#2", "bias": "bias"}},
		{"trials of the same", []spool.ModuleInfo{{Class: "Linear", ParameterBytes: 8},
			{Path: "Linear", Class: "Linear", First: true}, {Class: "Linear", ParameterBytes: 8},
			{Path: "Linear", Class: "Linear", First: true}},
			map[string]string{"weight": "Linear#1.weight", "Linear.weight": "Linear#2.weight", "Linear": "Linear#2"}},
		{"direct parameters of one name, and parts of others", []spool.ModuleInfo{{Class: "Student", ParameterBytes: 8},
			{Path: "up", Class: "Linear"}, {Path: "Teacher", Class: "Teacher", First: true},
			{Path: "Teacher.down", Class: "Linear"}}, map[string]string{"scale": "Student.scale", "up": "Student.up",
			"up.weight": "Student.up.weight", "Teacher.scale": "Teacher.scale", "Teacher.down": "Teacher.down"}},
		{"direct parameters of whom is not known", []spool.ModuleInfo{{Class: "Student", ParameterBytes: 8},
			{Path: "up", Class: "Linear"}, {Class: "Head", ParameterBytes: 8}, {Path: "Teacher", Class: "Teacher",
				First: true},
			{Path: "Teacher.down", Class: "Linear"}}, map[string]string{"scale": "scale", "up": "up",
			"Teacher.scale": "Teacher.scale", "Teacher.down": "Teacher.down"}},
		{"a student of another class, and two models of one", []spool.ModuleInfo{{Class: "Student"},
			{Path: "fc", Class: "Linear"}, {Path: "Net", Class: "Net", First: true}, {Path: "Net.fc", Class: "Linear"},
			{Path: "Net#2", Class: "Net", First: true}, {Path: "Net#2.fc", Class: "Linear"}},
			map[string]string{"fc": "Student.fc", "Net": "Net#1", "Net.fc": "Net#1.fc", "Net#2": "Net#2",
				"Net#2.fc": "Net#2.fc"}},
		{"trials, each with a GAN of its own, the last of which ends early",
			gans(2, spool.ModuleInfo{Class: "Discriminator"}, spool.ModuleInfo{Path: "main", Class: "Sequential"}),
			map[string]string{"main": "Discriminator.main", "main.weight": "Discriminator.main.weight",
				"Generator.main": "Generator.main", "Generator.main.weight": "Generator.main.weight"}},
		{"trials, each with a teacher and its student", append(pairs(3), spool.ModuleInfo{Class: "Net"},
			spool.ModuleInfo{Path: "else", Class: "Linear"}),
			map[string]string{"up": "Net#1.up", "up.weight": "Net#1.up.weight", "Net": "Net#2", "Net.up": "Net#2.up",
				"Net.up.weight": "Net#2.up.weight", "else": "else", "else.weight": "else.weight"}},
	} {
		j := &spool.Journal{Names: map[uint32]string{}}
		paths := map[string][]uint32{} // models that never lived at once have the same
		for i, m := range c.modules {
			m.ID, m.First = uint32(i+1), m.First || m.Path == ""
			j.Modules = append(j.Modules, m)
			if m.Path != "" {
				paths[m.Path] = append(paths[m.Path], m.ID)
			}
		}
		for _, m := range []spool.ModuleInfo{j.Modules[1], j.Modules[len(j.Modules)-1]} { // written again with news
			m.First = true
			j.Modules = append(j.Modules, m)
		}
		var id uint32
		ids := map[uint32]string{}
		for name := range c.names {
			id++
			j.Names[id], ids[id] = name, name
			// The script calls its own the same, and the category that it names too.
			j.Tags = append(j.Tags, spool.Tag{Kind: spool.TagParameter, Name: id}, spool.Tag{Kind: spool.TagUser,
				Name: id, Module: id}, spool.Tag{Kind: spool.TagParameter, Name: id})
		}
		l := labelsOf(j)
		got := map[string]string{}
		for path, all := range paths {
			for _, id := range all {
				if name, ok := c.names[path]; ok && l.path(id, path) != name {
					t.Errorf("%s: %s is %s, want %s", c.what, path, l.path(id, path), name)
				}
			}
		}
		before := slices.Clone(j.Tags)
		l.relabel(j)
		for i, tag := range j.Tags {
			old := ids[before[i].Name]
			if tag.Kind == spool.TagUser {
				if tag != before[i] || j.Names[tag.Name] != old {
					t.Errorf("%s: the script's own %q became %q", c.what, old, j.Names[tag.Name])
				}
			} else if _, path := paths[old]; path {
				got[old] = c.names[old]
			} else if name, ok := got[old]; ok && name != j.Names[tag.Name] {
				t.Errorf("%s: %q became %q and %q", c.what, old, name, j.Names[tag.Name])
			} else {
				got[old] = j.Names[tag.Name]
			}
		}
		if !maps.Equal(got, c.names) {
			t.Errorf("%s: %v, want %v", c.what, got, c.names)
		}
	}
}

// gans are a discriminator and a generator, made anew in each trial, and what comes after.
func gans(trials int, after ...spool.ModuleInfo) (out []spool.ModuleInfo) {
	for range trials {
		out = append(out, spool.ModuleInfo{Class: "Discriminator"}, spool.ModuleInfo{Path: "main", Class: "Sequential"},
			spool.ModuleInfo{Path: "Generator", Class: "Generator", First: true},
			spool.ModuleInfo{Path: "Generator.main", Class: "Sequential"})
	}
	return append(out, after...)
}

// pairs are two models of one class, made anew in each trial.
func pairs(trials int) (out []spool.ModuleInfo) {
	for range trials {
		out = append(out, spool.ModuleInfo{Class: "Net"}, spool.ModuleInfo{Path: "up", Class: "Linear"},
			spool.ModuleInfo{Path: "Net", Class: "Net", First: true}, spool.ModuleInfo{Path: "Net.up", Class: "Linear"})
	}
	return out
}
