package page

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/dpsight/dpsight/analyze/blocks"
	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/report/web"
	"github.com/dpsight/dpsight/schemas"
)

// MostBytes is the largest size of a page: a mail can carry that much.
const MostBytes = 6_000_000

// mostHeld is how many bytes of each detail are kept in memory until the page is written. Details beyond that belong to
// later devices, and would be chosen only if no earlier one fitted.
const mostHeld = 4 * MostBytes

// Generator is the tag by which dpsight recognises its own pages.
const Generator = `<meta name="generator" content="dpsight">`

// The details that a page may have about a device's blocks.
const (
	DetailNone   = "none"   // the page has no blocks
	DetailPoints = "points" // the page has stretches of events, each reduced to its highest event
	DetailWindow = "window" // the page has the stretches, and every event of the step with the peak
	DetailAll    = "all"    // the page has every event
)

// smallDevice is the number of events up to which a device is shown completely or not at all: a selection of so few
// would save nothing.
const smallDevice = 20_000

// details lists the levels of detail from the smallest to the largest.
var details = []string{DetailNone, DetailPoints, DetailWindow, DetailAll}

// A Builder collects the contents of a page.
type Builder struct {
	title     string
	documents map[string]json.RawMessage
	missing   map[string]string
	devices   []*device
	revisions map[string]string
	held      [4]int // bytes that each detail keeps
}

// A device is what a page contains of the blocks of one device.
type device struct {
	RunID  string `json:"run_id"`
	Device string `json:"device"`
	Rank   int32  `json:"rank"`
	Events int64  `json:"events"`
	Detail string `json:"detail"`
	From   int64  `json:"from"` // first and last event that the page has one by one
	To     int64  `json:"to"`

	from, to int64 // ends of the window, as events
	encoded  [4]string
}

// NewBuilder returns a builder for a page with a title.
func NewBuilder(title string) *Builder {
	return &Builder{title: title, documents: map[string]json.RawMessage{}, missing: map[string]string{},
		devices: []*device{}, revisions: map[string]string{}}
}

// Revision adds the repository revision of a run's script.
func (b *Builder) Revision(runID string, git *schemas.Git) {
	if git == nil {
		return
	}
	b.revisions[runID] = git.Revision
	if git.Dirty {
		b.revisions[runID] += "+"
	}
}

// Document adds a document that a command prints with --format json. If the document could not be made, the page shows
// the error instead.
func (b *Builder) Document(name string, tables []table.Table, err error) {
	var text bytes.Buffer
	if err == nil && len(tables) > 0 {
		err = table.Write(&text, "json", tables...)
	}
	switch {
	case err != nil:
		b.missing[name] = err.Error()
	case text.Len() > 0:
		b.documents[name] = text.Bytes()
	}
}

// Device adds a device's blocks. If all blocks would make the page too large, it contains points, and the blocks that
// live within the window.
func (b *Builder) Device(runID string, d *blocks.Device, points *timeline.DeviceTimeline, from, to int64) error {
	out := &device{RunID: runID, Device: d.Device, Rank: d.Rank, Events: d.Events, from: from, to: to}
	b.devices = append(b.devices, out)
	write := []func(io.Writer) error{
		nil,
		func(w io.Writer) error { return writeDevice(w, nil, points) },
		func(w io.Writer) error { within := d.Within(from, to); return writeDevice(w, &within, points) },
		func(w io.Writer) error { return writeDevice(w, d, nil) },
	}
	for level := len(write) - 1; level > 0; level-- {
		text, err := packed(write[level])
		if err != nil {
			return err
		}
		// Text above these limits hardly ever fits into a page.
		if len(text) <= MostBytes && b.held[level]+len(text) <= mostHeld {
			out.encoded[level] = strings.Clone(text) // a copy without the builder's spare capacity
			b.held[level] += len(text)
		}
		if len(text) < smallDevice {
			break
		}
	}
	return nil
}

// packed returns what write writes, compressed and encoded as text.
func packed(write func(io.Writer) error) (string, error) {
	var text strings.Builder
	encoder := base64.NewEncoder(base64.StdEncoding, &text)
	z, err := gzip.NewWriterLevel(encoder, gzip.DefaultCompression)
	if err == nil {
		err = write(z)
	}
	if err == nil {
		err = z.Close()
	}
	if err == nil {
		err = encoder.Close()
	}
	return text.String(), err
}

// choose gives each device the highest detail that fits into the remaining bytes. All devices get points before any
// device gets blocks.
func (b *Builder) choose(left int) {
	at := make([]int, len(b.devices))
	for level := range details {
		for i, d := range b.devices {
			more := len(d.encoded[level]) - len(d.encoded[at[i]])
			if level > 0 && d.encoded[level] != "" && more <= left {
				left -= more
				at[i] = level
			}
		}
	}
	for i, d := range b.devices {
		d.Detail = details[at[i]]
		switch d.Detail {
		case DetailAll:
			d.From, d.To = 0, d.Events
		case DetailWindow:
			d.From, d.To = d.from, d.to
		}
	}
}

// A category is a category as the page knows it.
type category struct {
	Name  string `json:"name"`
	Color string `json:"color"`
}

func categories() (out []category) {
	for _, row := range schemas.CategoryTable {
		out = append(out, category{row.Category, fmt.Sprintf("#%06x", row.Color)})
	}
	return out
}

// Write writes the page, with at most most bytes, and gives the devices as much detail as fits.
func (b *Builder) Write(w io.Writer, most int) error {
	documents, err := packed(func(w io.Writer) error { return json.NewEncoder(w).Encode(b.documents) })
	if err != nil {
		return err
	}
	b.choose(most - len(documents) - len(web.Script()) - len(web.Style()) - 4096 - 256*len(b.devices))
	about, err := b.about()
	if err != nil {
		return err
	}
	// The JSON encoder escapes <, > and &, so no name can end the HTML element around the JSON.
	out := bufio.NewWriter(w)
	head(out, b.title, false)
	fmt.Fprintf(out, `<script type="text/plain" id="about">%s</script>
<script type="text/plain" id="documents">%s</script>
`, about, documents)
	for i, d := range b.devices {
		level := 0
		for k, name := range details {
			if name == d.Detail {
				level = k
			}
		}
		fmt.Fprintf(out, "<script type=\"text/plain\" id=\"device-%d\">%s</script>\n", i, d.encoded[level])
	}
	fmt.Fprintf(out, "<script>%s</script>\n</body></html>\n", web.Script())
	return out.Flush()
}

// head writes the beginning of the page.
func head(out io.Writer, title string, served bool) {
	leaves := "Nothing leaves this file."
	if served {
		leaves = "Nothing leaves this machine."
	}
	fmt.Fprintf(out, `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
%s
<meta http-equiv="Content-Security-Policy" content="%s">
<title>%s</title><link rel="icon" href="data:,">
<style>%s</style></head><body>
<noscript>This page draws its charts with JavaScript. %s</noscript><div id="app"></div>
`, Generator, policy(served), html.EscapeString(title), web.Style(), leaves)
}

// about returns the page's facts about itself as JSON.
func (b *Builder) about() ([]byte, error) {
	return json.Marshal(map[string]any{"title": b.title, "categories": categories(), "devices": b.devices,
		"missing": b.missing, "revisions": b.revisions})
}

// policy returns the content security policy, by which the page runs only its own program. A page from a file may load
// nothing, and a served page only from its server.
func policy(served bool) string {
	sum := sha256.Sum256(web.Script())
	text := "default-src 'none'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
	if served {
		text += "; connect-src 'self'"
	}
	return text
}
