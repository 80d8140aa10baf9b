package identity

import (
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// The badge of a predicted run names the device's profile and the confidence.
func TestMarkSaysConfidence(t *testing.T) {
	said := &schemas.Confidence{Level: schemas.Indicative, Reasons: []string{"said then"}}
	in := schemas.Tables{Manifest: &schemas.Manifest{RunID: "p", Source: schemas.Predicted, Profile: new("h200")},
		Report: &schemas.IngestReport{Prediction: &schemas.Prediction{Confidence: said}}}
	if id := Of(&in); id.Badge() != "predicted (phantom h200, indicative)" || id.Confidence != said.Level ||
		id.ConfidenceReasons[0] != "said then" {
		t.Errorf("%+v", id)
	}
}
