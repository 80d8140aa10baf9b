package page

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/blocks"
	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

// noise returns a device with n random blocks, which cannot be compressed.
func noise(n int) *blocks.Device {
	r := rand.New(rand.NewPCG(1, 2))
	d := &blocks.Device{Device: "cuda:0", Events: int64(2 * n), To: int64(2 * n), Texts: []string{""}}
	for i := range n {
		d.Kind, d.Address = append(d.Kind, r.Uint32()), append(d.Address, r.Uint32())
		d.Begin, d.End = append(d.Begin, uint32(i+1)), append(d.End, uint32(i+2+r.IntN(n)))
		d.Next = append(d.Next, 0)
	}
	return d
}

// The page has as much detail of its devices as fits. The first devices get the most, and all devices have at least
// points. The page states the detail of each device.
func TestDetailThatFits(t *testing.T) {
	b := NewBuilder("large")
	points := &timeline.DeviceTimeline{Points: make([]timeline.TimelinePoint, 600)}
	for range 4 {
		if err := b.Device("run", noise(200_000), points, 0, 20_000); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := b.Write(&out, MostBytes); err != nil {
		t.Fatal(err)
	}
	if out.Len() > MostBytes {
		t.Errorf("%d bytes, over %d", out.Len(), MostBytes)
	}
	var got []string
	for _, d := range b.devices {
		got = append(got, d.Detail)
		if d.Detail == DetailWindow && (d.From != 0 || d.To != 20_000) || d.Detail == DetailAll && d.To != d.Events {
			t.Errorf("%+v", d)
		}
	}
	if got[0] != DetailAll || got[3] != DetailWindow {
		t.Errorf("details are %v", got)
	}
}

// No name ends an element of the page, whatever characters the name has.
func TestHostileNames(t *testing.T) {
	const name = "</script><script>alert(1)</script>\"'&\x00\u2028"
	b := NewBuilder(name)
	b.Document("runs", []table.Table{{Document: map[string]string{"name": name}}}, nil)
	b.Revision(name, &schemas.Git{Revision: "a1b2c3", Dirty: true})
	d := noise(3)
	d.Texts = []string{"", name}
	if err := b.Device(name, d, nil, 0, 1); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := b.Write(&out, MostBytes); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "alert(1)</script>") {
		t.Error("a name ends a script")
	}
	m := regexp.MustCompile(`(?s)id="about">(.*?)</script>`).FindSubmatch(out.Bytes())
	var about struct {
		Title     string
		Revisions map[string]string
	}
	if err := json.Unmarshal(m[1], &about); err != nil || about.Title != name || about.Revisions[name] != "a1b2c3+" {
		t.Errorf("%+v, %v", about, err)
	}
}
