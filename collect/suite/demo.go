package suite

import _ "embed"

//go:embed demo.yaml
var demo []byte

// Demo returns the suite of dpsight demo, which can only be predicted. Demo's suite is not in [Names], since the suites
// of [Names] have recordings in examples.
func Demo() (*Suite, error) { return Parse("demo", demo) }
