package compare

import (
	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/repeats"
)

// placing is [repeats.Placed], computed once for all runs of one likeness.
type placing func(*analyze.Summary) string

// experimentOf returns, for each run, the number of its experiment among the experiments of all runs.
func experimentOf(runs []*analyze.Summary, placed placing) map[*analyze.Summary]int {
	out := map[*analyze.Summary]int{}
	for i, group := range repeats.By(runs, placed) {
		for _, r := range group {
			out[r] = i
		}
	}
	return out
}

// tellOrigins gives each run of a pivot its value of originKey: the parts of the origin in which experiments of the
// same content differ.
func tellOrigins(runs []*analyze.Summary, placed placing) {
	ids, byContent, order := make([]identity.Identity, len(runs)), map[string][]int{}, []string{}
	for i, r := range runs {
		ids[i] = r.Identity
		k := placed(r)
		if byContent[k] == nil {
			order = append(order, k)
		}
		byContent[k] = append(byContent[k], i)
	}
	groups := make([][]int, len(order))
	for i, k := range order {
		groups[i] = byContent[k]
	}
	for i, text := range identity.TellingOrigins(ids, groups) {
		runs[i].Made = text
	}
}

// tellExperiments returns, for the first run of each experiment, the text that distinguishes it from the other
// experiments.
func tellExperiments(groups [][]*analyze.Summary) (texts []string) {
	ids, labels := make([]identity.Identity, len(groups)), make([]string, len(groups))
	texts = make([]string, len(groups))
	for i, g := range groups {
		ids[i], labels[i] = g[0].Identity, ""
	}
	identity.TellApart(ids, labels, func(i int, text string) {
		if texts[i] != "" {
			text = ", " + text
		}
		texts[i] += text
	})
	for i, g := range groups {
		if texts[i] == "" {
			texts[i] = g[0].Title()
		}
	}
	return texts
}

// poolingRemarks returns remarks about repeats of one experiment that were pooled although they differ by name, and
// about the parts of their origins that are unknown.
func poolingRemarks(runs []*analyze.Summary) (out []Remark) {
	if len(runs) < 2 {
		return nil
	}
	var revisions, versions []string
	noted := map[string]bool{}
	note := func(list []string, names ...string) []string {
		for _, n := range names {
			if n != "" && !noted[n] {
				noted[n] = true
				list = append(list, n)
			}
		}
		return list
	}
	unknown := 0
	seen := map[string]bool{}
	var origins []*identity.Origin // origins that differ: thousands of repeats have few
	for _, r := range runs {
		if !r.Origin.CodeKnown() {
			unknown++
		}
		key := r.Origin.Key()
		if seen[key] {
			continue
		}
		seen[key] = true
		for _, o := range origins {
			a, b := o.Revisions(&r.Origin)
			revisions = note(revisions, a, b)
			a, b = o.Versions(&r.Origin)
			versions = note(versions, a, b)
		}
		origins = append(origins, &r.Origin)
	}
	if len(revisions) > 0 {
		out = append(out, Remark{Kind: RemarkPooled, What: string(identity.PartRevision), N: len(runs), Names: revisions})
	}
	if len(versions) > 0 {
		out = append(out, Remark{Kind: RemarkPooled, What: string(identity.PartDpsight), N: len(runs), Names: versions})
	}
	if unknown > 0 && unknown < len(runs) {
		out = append(out, Remark{Kind: RemarkCodeUnknown, N: unknown, Of: len(runs)})
	}
	return out
}

// otherOrigin returns remarks on how the origins of a run and its baseline differ. Different scripts have different
// files anyway, so otherOrigin then reports no differing files.
func otherOrigin(baseline, run *analyze.Summary) (out []Remark) {
	code := Remark{Kind: RemarkCode}
	for _, a := range run.Origin.DiffersBeside(&baseline.Origin) {
		switch a.Part {
		case identity.PartFile:
			code.Names = append(code.Names, a.File)
		case identity.PartRevision:
			code.Now, code.Baseline = a.This, a.That
		case identity.PartDpsight, identity.PartAgent, identity.PartPhantom, identity.PartHost, identity.PartMemory:
			out = append(out, Remark{Kind: RemarkFact, What: string(a.Part), Now: a.This, Baseline: a.That})
		}
	}
	if baseline.Script == run.Script && !builtin(run) && (len(code.Names) > 0 || code.Now != "") {
		out = append(out, code)
	}
	return append(out, otherRules(baseline, run)...)
}

// otherRules returns a remark if different versions of the rules made the categories of a run and of its baseline.
func otherRules(baseline, run *analyze.Summary) []Remark {
	if run.Rules == nil || baseline.Rules == nil || *run.Rules == *baseline.Rules {
		return nil
	}
	return []Remark{{Kind: RemarkRules, Rules: [2]int{*run.Rules, *baseline.Rules}}}
}
