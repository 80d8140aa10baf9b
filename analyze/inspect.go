package analyze

import (
	"errors"

	"github.com/dpsight/dpsight/schemas"
)

// Inspection is one run with what can be found in it alone.
type Inspection struct {
	Summary   Summary
	findings  []Finding
	notLooked []string
}

// Inspect looks for everything that one run's tables tell. It wants all tables, with detail.
func Inspect(in Input) Inspection {
	ledgers := in.newLedgers()
	n := Inspection{Summary: in.summarize(ledgers), notLooked: []string{}}
	if in.Report == nil {
		n.notLooked = append(n.notLooked, "anything: the run has not been ingested")
		return n
	}
	n.findings = append(n.findings, in.failures(ledgers)...)
	var none *NoEventsError
	if err := in.noEvents(); errors.As(err, &none) {
		n.notLooked = append(n.notLooked, "bytes: "+none.Reason)
	} else if x := in.newFinder(&n.Summary, ledgers); x != nil {
		for _, look := range []func(*finder) []Finding{(*finder).growth, (*finder).cached, (*finder).gradients,
			(*finder).hooks, (*finder).workspaces, (*finder).perSample,
			(*finder).clipping, (*finder).outputs, (*finder).optimizer, (*finder).slack, (*finder).rule,
			(*finder).knowledge} {
			n.findings = append(n.findings, look(x)...)
		}
		n.notLooked = append(n.notLooked, x.notLooked...)
	}
	if in.Manifest.Source == schemas.Measured {
		n.findings = append(n.findings, in.disturbances(&n.Summary)...)
	} else {
		n.notLooked = append(n.notLooked, "times: "+in.Manifest.Source+" runs have none")
	}
	return n
}
