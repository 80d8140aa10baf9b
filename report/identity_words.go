package report

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

// unlikeWords say that runs with the same name and parameters are different experiments, since their arguments differ.
func unlikeWords(list []identity.Unlike) (notes []string) {
	for _, u := range list {
		var differ []string
		for _, text := range u.Arguments {
			if text == "" {
				text = "none"
			}
			differ = append(differ, text)
		}
		const most = 4
		notes = append(notes, fmt.Sprintf("%s: runs with different arguments (%s) are different experiments; "+
			"collect --param NAME=VALUE names what varies", u.Title, schemas.Shortlist(differ, most)))
	}
	return notes
}
