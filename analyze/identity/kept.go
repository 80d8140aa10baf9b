package identity

import "github.com/dpsight/dpsight/schemas"

// Kept is what a kept summary stores of a run's identity besides the fields that JSON documents show. Kept has only
// values that differ from run to run.
type Kept struct {
	Rules   *int         `json:"rules,omitempty"`
	Command []string     `json:"command,omitempty"`
	Git     *schemas.Git `json:"git,omitempty"`
}

// KeptOrigin is what a kept summary stores of a run's origin and facts. Many runs share one KeptOrigin.
type KeptOrigin struct {
	Code     *schemas.Code `json:"code,omitempty"`
	Complete bool          `json:"complete,omitempty"`
	Version  string        `json:"version,omitempty"`
	Agent    string        `json:"agent,omitempty"`
	Phantom  string        `json:"phantom,omitempty"`
	MadeBy   string        `json:"made_by,omitempty"` // version of the rules that made the categories
	Host     string        `json:"host,omitempty"`
	Cards    []string      `json:"cards,omitempty"`
	Memory   int64         `json:"memory,omitempty"` // memory of the first GPU, in bytes
	Facts    []KeptFact    `json:"facts,omitempty"`
}

// KeptFact is a fact together with the JSON that the fact's value abbreviates.
type KeptFact struct {
	Fact
	Whole string `json:"whole,omitempty"`
}

// Keep returns a run's identity and facts in the form in which a kept summary stores them.
func Keep(id *Identity, facts []Fact) (Kept, KeptOrigin) {
	o := &id.Origin
	k := KeptOrigin{Code: o.Code, Complete: o.Complete, Version: o.version, Agent: o.agent, Phantom: o.phantom,
		MadeBy: o.rules, Host: o.host, Cards: o.cards, Memory: o.memory}
	for _, f := range facts {
		k.Facts = append(k.Facts, KeptFact{f, f.Whole})
	}
	return Kept{id.Rules, id.Command, o.Git}, k
}

// Read returns the facts and the origin that several runs share. The origin lacks the values that differ from run to
// run; [Kept.Into] adds them.
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

// Into fills an identity with the values of a kept summary.
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
