package identity

import (
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"
)

// Alike reports whether two origins agree in all parts that are known for both. Alike decides as [Origin.Differs] does,
// but is faster since it names no parts: a store of thousands of runs has many pairs.
func (o *Origin) Alike(p *Origin) bool {
	a, b := revision(o.Git), revision(p.Git)
	if a != b && a != "" && b != "" && (o.Code == nil || p.Code == nil) {
		return false
	}
	return len(o.Differs(p)) == 0
}

// Key returns a string that is equal for two origins if all their parts are equal. A part that is unknown in both
// counts as equal.
func (o *Origin) Key() string { return revision(o.Git) + "\x01" + o.beside }

// CodeKey is [Origin.Key] without the revision, which does not matter between two runs whose code is known.
func (o *Origin) CodeKey() string { return o.beside }

// digest computes the digests that comparisons of origins use. digest runs once for each origin, since many runs share
// an origin.
func (o *Origin) digest() { o.beside, o.modules = o.text(), contents(o.Code) }

// text returns a digest of all parts of the origin except the revision.
func (o *Origin) text() string {
	var b strings.Builder
	add := func(words ...string) {
		for _, w := range words {
			b.WriteString(w)
			b.WriteByte(0)
		}
	}
	add(o.source, o.version, o.agent, o.phantom, o.rules, o.host, strconv.FormatBool(o.Complete),
		strconv.FormatInt(o.memory, 10))
	add(o.cards...)
	b.WriteByte(1)
	for i := range o.facts {
		add(o.facts[i].What, o.facts[i].Value, o.facts[i].Whole)
	}
	b.WriteByte(1)
	if o.Code != nil {
		for i := range o.Code.Files {
			f := &o.Code.Files[i]
			add(f.Module, f.File)
			if f.SHA256 != nil {
				add(*f.SHA256)
			}
		}
	}
	sum := sha256.Sum256([]byte(b.String()))
	return string(sum[:])
}

// telling returns a few members of a group whose differences cover every part in which any two members differ. Of
// members that differ only in their revisions, two are enough.
func telling(ids []Identity, group []int) (some []int) {
	type class struct {
		first  string
		second bool
	}
	seen := map[string]*class{}
	for _, i := range group {
		o := &ids[i].Origin
		key, rev := o.beside, revision(o.Git)
		switch c := seen[key]; {
		case c == nil:
			seen[key] = &class{first: rev}
		case c.second || rev == c.first || rev == "":
			continue
		case c.first == "":
			c.first = rev
		default:
			c.second = true
		}
		some = append(some, i)
	}
	return some
}

// Without returns the origin with some parts made unknown. names are the names that [Origin.Fact] uses.
func (o *Origin) Without(names ...string) Origin {
	out := *o
	for _, name := range names {
		switch Part(strings.ToLower(name)) {
		case PartRevision:
			out.Code, out.Git, out.modules = nil, nil, nil
		case PartHost:
			out.host, out.cards = "", nil
		case PartDpsight:
			out.version, out.agent, out.phantom, out.rules = "", "", "", ""
		}
	}
	out.facts = slices.DeleteFunc(slices.Clone(o.facts), func(f Fact) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, f.What) })
	})
	return out
}

// Fact returns an origin's value of a part by its name: revision, host, dpsight, or a fact of its environment such as
// torch, in any case. Fact returns "" if the origin has no such part.
func (o *Origin) Fact(name string) string {
	switch Part(name) {
	case PartRevision:
		return revision(o.Git)
	case PartHost:
		return o.host
	case PartDpsight:
		return o.version
	}
	for i := range o.facts {
		if strings.EqualFold(o.facts[i].What, name) {
			return o.facts[i].Value
		}
	}
	return ""
}
