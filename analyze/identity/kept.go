package identity

import "github.com/dpsight/dpsight/schemas"

// Kept is the part of a run's identity that its summary keeps in addition to what documents show. Every run has its
// own Kept.
type Kept struct {
	Rules   *int         `json:"rules,omitempty"`
	Command []string     `json:"command,omitempty"`
	Git     *schemas.Git `json:"git,omitempty"`
}

// KeptOrigin is what is kept of a run's origin, with the facts of the run, on which the origin depends. Many runs
// share one KeptOrigin.
type KeptOrigin struct {
	Code     *schemas.Code `json:"code,omitempty"`
	Complete bool          `json:"complete,omitempty"`
	Version  string        `json:"version,omitempty"`
	Agent    string        `json:"agent,omitempty"`
	Phantom  string        `json:"phantom,omitempty"`
	MadeBy   string        `json:"made_by,omitempty"` // the version of the rules
	Host     string        `json:"host,omitempty"`
	Cards    []string      `json:"cards,omitempty"`
	Memory   int64         `json:"memory,omitempty"` // of the first card, in bytes
	Facts    []KeptFact    `json:"facts,omitempty"`
}

// KeptFact is a fact with the JSON that its value abbreviates.
type KeptFact struct {
	Fact
	Whole string `json:"whole,omitempty"`
}

// Keep is the form in which the rest of an identity, and the run's facts, are kept.
func Keep(id *Identity, facts []Fact) (Kept, KeptOrigin) {
	o := &id.Origin
	k := KeptOrigin{Code: o.Code, Complete: o.Complete, Version: o.version, Agent: o.agent, Phantom: o.phantom,
		MadeBy: o.rules, Host: o.host, Cards: o.cards, Memory: o.memory}
	for _, f := range facts {
		k.Facts = append(k.Facts, KeptFact{f, f.Whole})
	}
	return Kept{id.Rules, id.Command, o.Git}, k
}

// Read returns the run's facts, and the origin that runs of a source share, without what each run has of its own.
func (k *KeptOrigin) Read(source string) (Origin, []Fact) {
	var facts []Fact
	for _, f := range k.Facts {
		f.Fact.Whole = f.Whole
		facts = append(facts, f.Fact)
	}
	o := Origin{Code: k.Code, Complete: k.Complete, source: source, version: k.Version, agent: k.Agent,
		phantom: k.Phantom, rules: k.MadeBy, host: k.Host, cards: k.Cards, memory: k.Memory,
		facts: conditions(facts, source)}
	o.digest()
	return o, facts
}

// Into fills an identity with what was kept.
func (k *Kept) Into(id *Identity, o Origin) {
	id.Rules, id.Command, id.Origin = k.Rules, k.Command, o
	id.Origin.Git = k.Git
}

// conditions returns the facts about a run's environment.
func conditions(all []Fact, source string) (of []Fact) {
	for _, f := range all {
		if !f.Param && (f.What != "driver" || source == schemas.Measured) {
			of = append(of, f)
		}
	}
	return of
}
