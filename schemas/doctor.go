package schemas

// DoctorSchema is the version of [Doctor].
const DoctorSchema = "dpsight.doctor/1"

// Doctor is what "dpsight doctor --format json" prints: what a machine can record.
type Doctor struct {
	Schema   string         `json:"schema"`
	Checks   []DoctorCheck  `json:"checks"`
	Features []TorchFeature `json:"features"` // features of the interpreter's torch; empty = none could be tried
}

// DoctorCheck is one thing that recording needs, or that improves recording.
type DoctorCheck struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Needed bool   `json:"needed"` // nothing can be recorded if the check fails
	Detail string `json:"detail"`
	Hint   string `json:"hint"` // what to do if the check fails
}

// TorchFeature is one private function or attribute of torch that the agent uses, and whether it works in the installed
// torch.
type TorchFeature struct {
	Name    string `json:"name"`
	OK      bool   `json:"ok"`
	Needed  bool   `json:"needed"` // nothing can be recorded without the feature
	Gives   string `json:"gives"`
	Without string `json:"without"` // what is lost if the feature does not work
	Error   string `json:"error"`   // the error that the probe raised; empty = none
}

// Missing returns the names of the checks that failed although recording needs them.
func (d *Doctor) Missing() []string {
	var names []string
	for _, c := range d.Checks {
		if c.Needed && !c.OK {
			names = append(names, c.Name)
		}
	}
	return names
}
