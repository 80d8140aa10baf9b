package experiments

import (
	"fmt"
	"strings"
)

// ResolveOne does what [Resolve] does for a single run, and refuses a list of methods.
func ResolveOne(given map[string]string) (map[string]any, error) {
	if strings.Contains(given["method"], ",") {
		return nil, &SeveralMethodsError{given["method"]}
	}
	return Resolve(given)
}

// A SeveralMethodsError reports that the user named several methods where only one is possible.
type SeveralMethodsError struct{ Methods string }

func (e *SeveralMethodsError) Error() string {
	return fmt.Sprintf("--method names several methods (%s), and a run has one", e.Methods)
}

// Hint names the commands that take several methods.
func (e *SeveralMethodsError) Hint() string {
	return "dpsight predict takes several methods with --vary, as in --vary batch_size=1..512; otherwise run one method " +
		"at a time, or write a suite with a matrix of methods (dpsight collect --suite FILE)"
}
