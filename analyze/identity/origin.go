package identity

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// Origin is what determines a run's figures besides its experiment: the code that it executed, the dpsight that
// recorded it, and its environment. Runs of one experiment are repeats only if their origins do not differ. Unknown
// parts are empty.
type Origin struct {
	Code *schemas.Code
	Git  *schemas.Git // nil also for a built-in experiment, whose code is not in the repository where it was started
	// Complete reports whether the run ended well, so that Code lists all that the script imports.
	Complete bool

	source                         string
	version, agent, phantom, rules string // versions of dpsight and of its parts
	host                           string
	cards                          []string // UUIDs of the GPUs
	memory                         int64    // memory of the first GPU, in bytes
	facts                          []Fact   // facts of the run's environment: GPU, torch, …

	beside  string    // a digest of all facts except the revision
	modules []content // modules of the code, by name
}

// OriginOf returns a run's origin, from its manifest and its report.
func OriginOf(in *schemas.Tables) Origin {
	m := in.Manifest
	o := Origin{Code: m.Code, Git: m.Git, Complete: m.Status == schemas.StatusOK, source: m.Source,
		version: m.Collector.Version}
	if slices.Contains(m.Command, BuiltinModule) {
		o.Git = nil
	}
	if b := m.Collector.Built; b != nil {
		o.agent = b.Agent
		if m.Source == schemas.Predicted {
			o.phantom = b.Phantom
		}
	}
	if in.Report != nil && in.Report.Rules > 0 {
		o.rules = strconv.Itoa(in.Report.Rules)
	}
	if m.Source == schemas.Measured { // a prediction does not depend on the machine that made it
		o.host = m.Host.Name
		for _, g := range m.GPUs {
			o.cards = append(o.cards, g.UUID)
		}
		if len(m.GPUs) > 0 {
			o.memory = m.GPUs[0].TotalBytes
		}
	}
	o.facts = conditions(FactsOf(m), m.Source)
	o.digest()
	return o
}

// A Part is a part of an origin.
type Part string

// The parts of origins. In addition, each fact of a run's environment is a part with the fact's name, such as torch.
const (
	PartFile     Part = "file"     // a script or a module that differs
	PartRevision Part = "revision" // the revision of the repository differs
	PartDpsight  Part = "dpsight"  // the version of dpsight differs
	PartAgent    Part = "agent"    // the files of dpsight that record differ
	PartPhantom  Part = "phantom"  // the phantom GPU of dpsight differs
	PartRules    Part = "rules"    // the versions of the rules by which ingest attributes blocks differ
	PartHost     Part = "host"
	PartMemory   Part = "GPU memory"
)

// An Apart is a part in which two origins differ, with both values. A value is "" if that origin does not have the
// part.
type Apart struct {
	Part       Part
	File       string // the file, for [PartFile]
	This, That string
}

// Differs lists the parts in which the origins of two runs of one experiment differ. A part counts only if it is known
// for both runs.
func (o *Origin) Differs(p *Origin) []Apart { return o.differs(p, o.Complete && p.Complete) }

// DiffersBeside is [Origin.Differs] for runs of different experiments. DiffersBeside ignores modules that only one of
// the runs imported.
func (o *Origin) DiffersBeside(p *Origin) []Apart { return o.differs(p, false) }

// differs lists the parts in which two origins differ. If whole is true, it compares all files of both runs, otherwise
// only the files that both executed.
func (o *Origin) differs(p *Origin, whole bool) (out []Apart) {
	add := func(part Part, this, that string) bool {
		if this == "" || that == "" || this == that {
			return false
		}
		out = append(out, Apart{part, "", this, that})
		return true
	}
	files, known := o.files(p, whole)
	out = append(out, files...)
	if !known || len(files) > 0 {
		add(PartRevision, revision(o.Git), revision(p.Git))
	}
	sameBuild := o.agent != "" && o.agent == p.agent && o.phantom == p.phantom
	if sameBuild || !add(PartDpsight, o.version, p.version) {
		add(PartAgent, o.agent, p.agent)
		add(PartPhantom, o.phantom, p.phantom)
	}
	add(PartRules, o.rules, p.rules)
	if !o.sameHost(p) {
		add(PartHost, o.host, p.host)
	}
	if o.memory > 0 && p.memory > 0 {
		add(PartMemory, fmt.Sprint(o.memory), fmt.Sprint(p.memory))
	}
	for i := range o.facts {
		f := &o.facts[i]
		if k := slices.IndexFunc(p.facts, func(g Fact) bool { return g.What == f.What }); k >= 0 {
			if g := &p.facts[k]; !f.Equals(g) {
				out = append(out, Apart{Part(f.What), "", f.Value, g.Value})
			}
		}
	}
	return out
}

// Revision returns the revision, with a plus sign if files had been changed since; nil if unknown.
func (o *Origin) Revision() *string { return OrNull(revision(o.Git)) }

// Digest returns the digest of the code, or nil if it is not known.
func (o *Origin) Digest() *string {
	if o.Code == nil {
		return nil
	}
	return o.Code.Digest
}

// Agent returns a digest of the agent that recorded the run, or nil if it is unknown.
func (o *Origin) Agent() *string { return OrNull(o.agent) }

// CodeKnown reports whether the contents of all files that the run executed are known.
func (o *Origin) CodeKnown() bool { return o.Code != nil && o.Code.Digest != nil }

// SameCode reports whether two runs executed the same code. SameCode returns false if the code of either run is not
// known.
func (o *Origin) SameCode(p *Origin) bool {
	files, known := o.files(p, o.Complete && p.Complete)
	return known && len(files) == 0
}

// Revisions returns the revisions of two runs if their code is the same and their revisions differ. In all other cases
// Revisions returns two empty strings.
func (o *Origin) Revisions(p *Origin) (this, that string) {
	if a, b := revision(o.Git), revision(p.Git); a != b && a != "" && b != "" && o.SameCode(p) {
		return a, b
	}
	return "", ""
}

// Versions returns the dpsight versions of two runs if the versions differ although the recording code and the rules
// are the same. In all other cases Versions returns two empty strings.
func (o *Origin) Versions(p *Origin) (this, that string) {
	if o.version != p.version && o.agent != "" && o.agent == p.agent && o.phantom == p.phantom {
		return o.version, p.version
	}
	return "", ""
}

// revision returns the name of a Git revision, with a plus sign if files had been changed since the commit.
func revision(g *schemas.Git) string {
	if g == nil || g.Revision == "" {
		return ""
	}
	const short = 12
	name := g.Revision[:min(short, len(g.Revision))]
	if g.Dirty {
		name += "+"
	}
	return name
}

// sameHost reports whether two runs were made on the same machine. A container gets a new host name each time it
// starts, so runs on the same cards also count as made on one machine.
func (o *Origin) sameHost(p *Origin) bool {
	return o.host == p.host || slices.ContainsFunc(o.cards, func(c string) bool {
		return c != "" && slices.Contains(p.cards, c)
	})
}

// files lists the files in which the code of two runs differs. known is false if they could not be compared. A run that
// did not end well may lack modules that it would have imported later.
func (o *Origin) files(p *Origin, whole bool) (out []Apart, known bool) {
	if o.Code == nil || p.Code == nil {
		return nil, false
	}
	if o.CodeKnown() && p.CodeKnown() && *o.Code.Digest == *p.Code.Digest {
		return nil, true
	}
	known = true
	for ours, theirs := o.modules, p.modules; len(ours) > 0 || len(theirs) > 0; {
		var a, b content
		order := -1
		switch {
		case len(ours) == 0:
			order = 1
		case len(theirs) > 0:
			order = cmp.Compare(ours[0].module, theirs[0].module)
		}
		if order <= 0 {
			a, ours = ours[0], ours[1:]
		}
		if order >= 0 {
			b, theirs = theirs[0], theirs[1:]
		}
		switch {
		case a.hash == b.hash && a.hash != "":
		case order != 0: // one of the runs did not import the module
			if one := cmp.Or(a.module, b.module); whole || one == schemas.MainModule {
				out = append(out, Apart{PartFile, cmp.Or(a.files, b.files), a.hash, b.hash})
			}
		case a.hash == "" || b.hash == "":
			known = false
		default:
			out = append(out, Apart{PartFile, a.files, a.hash, b.hash})
		}
	}
	return out, known
}

// content identifies a module: several files if a run has several scripts. hash is "" if a file's content is not
// known.
type content struct{ module, files, hash string }

// contents lists the contents of a run's modules by name.
func contents(c *schemas.Code) (out []content) {
	if c == nil {
		return nil
	}
	files, hashes := map[string][]string{}, map[string][]string{}
	for _, f := range c.Files {
		if !slices.Contains(files[f.Module], f.File) {
			files[f.Module] = append(files[f.Module], f.File)
		}
		hash := ""
		if f.SHA256 != nil {
			hash = *f.SHA256
		}
		hashes[f.Module] = append(hashes[f.Module], hash)
	}
	for _, module := range SortedKeys(files) {
		all := hashes[module]
		slices.Sort(all)
		all = slices.Compact(all)
		hash := ""
		if !slices.Contains(all, "") {
			const short = 12
			for i := range all {
				all[i] = all[i][:min(short, len(all[i]))]
			}
			hash = strings.Join(all, " ")
		}
		out = append(out, content{module, strings.Join(files[module], " "), hash})
	}
	return out
}

// TellingOrigins returns, for each run, the parts of its origin that distinguish it from other runs in its group,
// written like parameters: "revision=1a2b3c4d5e6f, host=gpu2". TellingOrigins leaves out a part that follows from the
// parts before it. A part that distinguishes runs of one group is shown in all groups.
func TellingOrigins(ids []Identity, groups [][]int) []string {
	out := make([]string, len(ids))
	var keys []Apart
	known := differences{}
	for _, g := range groups {
		for _, key := range differingParts(ids, g, known) {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	for _, key := range keys {
		values := map[string]string{} // values of a fact, by origin
		value := func(i int) string {
			o := &ids[i].Origin
			of, ok := values[o.Key()]
			if !ok {
				of = o.value(key)
				values[o.Key()] = of
			}
			return of
		}
		settled := true
		for _, g := range groups {
			values := map[string]string{}
			for _, i := range g {
				of := value(i)
				if old, ok := values[out[i]]; ok && old != of {
					settled = false
				}
				values[out[i]] = of
			}
		}
		if settled {
			continue
		}
		for _, g := range groups {
			for _, i := range g {
				of := value(i)
				if out[i] != "" && of != "" {
					of = ", " + of
				}
				out[i] += of
			}
		}
	}
	return out
}

// differences maps the keys of two origins to the parts in which these origins differ, without values. Groups of a
// store's runs have mostly the same origins, so each pair is compared once.
type differences map[[2]string][]Apart

// differingParts lists the parts in which any two of some runs differ, without values. Revisions come first, because
// people know them, then the other parts in their order, and files last. differingParts adds the differences of pairs
// to known.
func differingParts(ids []Identity, group []int, known differences) (keys []Apart) {
	group = telling(ids, group)
	names := make([]string, len(group))
	for k, i := range group {
		o := &ids[i].Origin
		names[k] = o.Key()
		for l, j := range group[:k] {
			pair := [2]string{names[k], names[l]}
			apart, ok := known[pair]
			if !ok {
				apart = o.Differs(&ids[j].Origin)
				for n := range apart {
					apart[n].This, apart[n].That = "", ""
				}
				known[pair] = apart
			}
			for _, a := range apart {
				if !slices.Contains(keys, a) {
					keys = append(keys, a)
				}
			}
		}
	}
	slices.SortStableFunc(keys, func(a, b Apart) int {
		rank := func(p Part) int {
			switch p {
			case PartRevision:
				return 0
			case PartFile:
				return 2
			}
			return 1
		}
		return cmp.Compare(rank(a.Part), rank(b.Part))
	})
	return keys
}

// value returns an origin's value of a part, as text for a label; "" if the origin has no such part.
func (o *Origin) value(key Apart) string {
	name, text := string(key.Part), ""
	switch key.Part {
	case PartFile:
		name = key.File
		for _, c := range o.modules {
			if c.files == key.File {
				text = c.hash
			}
		}
	case PartRevision:
		text = revision(o.Git)
	case PartDpsight:
		text = o.version
	case PartAgent:
		text = strings.TrimPrefix(o.agent, "sha256:")
	case PartPhantom:
		text = strings.TrimPrefix(o.phantom, "sha256:")
	case PartRules:
		text = o.rules
	case PartHost:
		text = o.host
	case PartMemory:
		if o.memory > 0 {
			text = shownText("gpu_memory", o.memory)
		}
	default:
		for i := range o.facts {
			if o.facts[i].What == string(key.Part) {
				text = o.facts[i].Value
			}
		}
	}
	if text == "" {
		return ""
	}
	return name + "=" + text
}
