package suite

import _ "embed"

//go:embed demo.yaml
var demo []byte

// Demo is the suite of dpsight demo. It is predicted only, so it is none of [Names], whose recordings lie in examples.
func Demo() (*Suite, error) { return Parse("demo", demo) }
