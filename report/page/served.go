package page

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/dpsight/dpsight/analyze/blocks"
	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/report/web"
)

// MostServed is the largest number of events that a server sends one by one for a device. If there are more, it sends
// the highest event of each stretch.
const MostServed = 250_000

// Policy returns the content security policy of a served page.
func Policy() string { return policy(true) + "; frame-ancestors 'none'" }

// WriteServed writes the page without data. The page's program requests the data from the server.
func WriteServed(w io.Writer) error {
	out := bufio.NewWriter(w)
	head(out, "dpsight", true)
	fmt.Fprintf(out, "<script>%s</script>\n</body></html>\n", web.Script())
	return out.Flush()
}

// ServedDevice adds a device whose blocks a server sends on request, for at most most events at once. If a device has
// more events, the page first shows the blocks around its peak.
func (b *Builder) ServedDevice(runID, name string, rank int32, events, peak, most int64) {
	d := &device{RunID: runID, Device: name, Rank: rank, Events: events, Detail: DetailAll, To: events}
	if events > most {
		d.Detail, d.From, d.To = DetailWindow, max(0, peak-most/2), min(events, peak+most/2)
	}
	b.devices = append(b.devices, d)
}

// Served returns, as JSON, the page's facts about itself and the commands' documents.
func (b *Builder) Served() (about, documents []byte, err error) {
	if about, err = b.about(); err == nil {
		documents, err = json.Marshal(b.documents)
	}
	return about, documents, err
}

// Streams returns a device's Arrow streams: blocks unless d is nil, and points unless points is nil.
func Streams(d *blocks.Device, points *timeline.DeviceTimeline) ([]byte, error) {
	var out bytes.Buffer
	err := writeDevice(&out, d, points)
	return out.Bytes(), err
}
