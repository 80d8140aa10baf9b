package compare_test

import (
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	. "github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/schemas"
)

// If hooks hold activations that autograd would otherwise hold, they cost nothing extra, and no remark claims that they
// do.
func TestHooksInsteadOfAutograd(t *testing.T) {
	const m = 1 << 20
	was := analyze.Summarize(fixture.Sized("vanilla", map[schemas.Category]int64{schemas.Parameters: m,
		schemas.Activations: 10 * m}))
	for _, c := range []struct {
		what  string
		bytes map[schemas.Category]int64
		want  string
	}{
		{"exchanged", map[schemas.Category]int64{schemas.Parameters: m, schemas.Activations: 4 * m,
			schemas.HookActivations: 7 * m},
			"activations are 6.00 MiB less than at the baseline's peak, and hook activations 7.00 MiB more: hooks " +
				"hold tensors that autograd does not. Together the two differ by +1.00 MiB"},
		{"added", map[schemas.Category]int64{schemas.Parameters: m, schemas.Activations: 10 * m,
			schemas.HookActivations: 7 * m}, ""},
		{"no hooks", map[schemas.Category]int64{schemas.Parameters: m, schemas.Activations: 4 * m}, ""},
	} {
		now := analyze.Summarize(fixture.Sized("bk", c.bytes))
		said := strings.Join(overheads(was, []analyze.Summary{now}).Runs[0].Warnings, "\n")
		held := HooksInsteadOfAutograd(&was, &now)
		if (held != nil) != (c.want != "") || !strings.Contains(said, c.want) {
			t.Errorf("%s: %+v; among the warnings %q", c.what, held, said)
		}
	}
}
