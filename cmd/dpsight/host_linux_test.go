package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
)

type hostDoc struct {
	Schema string
	Runs   []struct {
		Tree *struct {
			Readings int64
			Highest  int64 `json:"highest_bytes"`
		}
		Ranks []struct {
			Resident hostMemory
			Pinned   *hostMemory
		}
	}
}

type hostMemory struct {
	Growth    int64    `json:"growth_bytes"`
	Unknown   int64    `json:"unknown_bytes"`
	Explained *float64 `json:"explained_percent"`
	Trend     *struct {
		PerStep int64 `json:"bytes_per_step"`
	}
	Phases []struct {
		Phase string
		Bytes int64
		Steps int64
	}
}

// sum returns by how many bytes host memory grew in all phases together, and in the steps without phases.
func (m *hostMemory) sum() int64 {
	sum := m.Unknown
	for _, p := range m.Phases {
		sum += p.Bytes
	}
	return sum
}

// A run that an older dpsight recorded has no readings of host memory at marks. The command then names the older
// dpsight.
func TestHostDocument(t *testing.T) {
	stores(t, func(t *testing.T, store string) {
		var doc hostDoc
		decodeOne(t, must(t, "", "analyze", "host", store, "--format", "json"), hostShape, &doc)
		if doc.Schema != "dpsight.host/1" || len(doc.Runs) == 0 {
			t.Fatalf("%+v", doc)
		}
	})
	said := must(t, "", "analyze", "host", "../../examples/headline").stdout
	if !strings.Contains(said, "an older dpsight") {
		t.Errorf("said of a run without readings:\n%s", said)
	}
}

// The script's memory grows in known places: by 8 MiB a step in forward, and by 4 MiB of page-locked memory between the
// steps. At least 95 % of the growth is assigned to the right phase.
func TestHostGrowthHasItsPhase(t *testing.T) {
	testkit.Rest(t)
	t.Parallel()
	program := scriptFile(t, `
import numpy, torch
inner, kept, pinned = torch.nn.Linear(256, 256), [], []
class Growing(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = inner
    def forward(self, x):
        kept.append(numpy.ones(1 << 20))
        return self.inner(x)
model = Growing().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(60):
    model(torch.ones(64, 256, device="cuda")).sum().backward()
    pinned.append(torch.empty(4 << 20, dtype=torch.uint8, pin_memory=True))
    optimizer.step()
    optimizer.zero_grad()
`)
	dir := t.TempDir()
	r := dpsight(t, dir, "collect", "--device", "phantom", "--store", dir, "--", python(t), program)
	if r.code != exitDone {
		t.Fatal(r.stderr)
	}
	var doc hostDoc
	pictures := filepath.Join(dir, "pictures")
	decodeOne(t, must(t, dir, "analyze", "host", "--store", dir, "--format", "json", "-o", pictures), hostShape, &doc)
	for _, name := range []string{"host_memory.png", "host_memory.svg"} {
		if st, err := os.Stat(filepath.Join(pictures, name)); err != nil || st.Size() < 1000 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(doc.Runs) != 1 || len(doc.Runs[0].Ranks) != 1 || doc.Runs[0].Ranks[0].Pinned == nil || doc.Runs[0].Tree == nil {
		t.Fatalf("%+v", doc)
	}
	p := doc.Runs[0].Ranks[0]
	for _, c := range []struct {
		memory *hostMemory
		phase  string
		step   int64
	}{{&p.Resident, "forward", 8 << 20}, {p.Pinned, "between", 4 << 20}} {
		m := c.memory
		if m.sum() != m.Growth || len(m.Phases) == 0 || m.Phases[0].Phase != c.phase {
			t.Errorf("%s: %+v", c.phase, m)
			continue
		}
		if m.Explained == nil || *m.Explained < 95 {
			t.Errorf("%s: %v %% are explained of %+v", c.phase, m.Explained, m)
		}
		if planted := float64(60 * c.step); float64(m.Phases[0].Bytes) < 0.95*planted ||
			float64(m.Phases[0].Bytes) > 1.1*planted {
			t.Errorf("%s: %d bytes of %.0f that were planted", c.phase, m.Phases[0].Bytes, planted)
		}
		if m.Trend == nil || m.Trend.PerStep < c.step*95/100 || m.Trend.PerStep > c.step*105/100 {
			t.Errorf("%s: trend %+v, of %d bytes a step", c.phase, m.Trend, c.step)
		}
	}
	found := must(t, dir, "analyze", "findings", "--store", dir).stdout
	if !strings.Contains(found, "[host-growth]") || !strings.Contains(found, "4.00 MiB a step") {
		t.Errorf("the page-locked memory's growth is not found:\n%s", found)
	}
}
