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

// MostBytes is the largest size of a page: what a mail may carry.
const MostBytes = 6_000_000

// mostHeld is how many bytes of each detail are held until the page is written: details of later devices beyond
// mostHeld could be chosen only if all earlier ones did not fit.
const mostHeld = 4 * MostBytes

// Generator is what tells a page from other files.
const Generator = `<meta name="generator" content="dpsight">`

// The amount of detail that a page has for the blocks of a device.
const (
	DetailNone   = "none"   // nothing
	DetailPoints = "points" // stretches of events reduced to their highest
	DetailWindow = "window" // the points, and every event of the step of the peak
	DetailAll    = "all"    // every event
)

// smallDevice bounds a device whose events are always shown completely or not at all: a smaller selection would not
// save anything.
const smallDevice = 20_000

// details are in the order of their sizes.
var details = []string{DetailNone, DetailPoints, DetailWindow, DetailAll}

// A Builder collects what a page shows.
type Builder struct {
	title     string
	documents map[string]json.RawMessage
	missing   map[string]string
	devices   []*device
	revisions map[string]string
	held      [4]int // bytes, by detail
}

// A device is what a page has of the blocks of one device of a run.
type device struct {
	RunID  string `json:"run_id"`
	Device string `json:"device"`
	Rank   int32  `json:"rank"`
	Events int64  `json:"events"`
	Detail string `json:"detail"`
	From   int64  `json:"from"` // the first and the last event that are here one by one
	To     int64  `json:"to"`

	from, to int64 // of the window
	encoded  [4]string
}

// NewBuilder begins a page.
func NewBuilder(title string) *Builder {
	return &Builder{title: title, documents: map[string]json.RawMessage{}, missing: map[string]string{},
		devices: []*device{}, revisions: map[string]string{}}
}

// Revision sets the repository revision of a run's script.
func (b *Builder) Revision(runID string, git *schemas.Git) {
	if git == nil {
		return
	}
	b.revisions[runID] = git.Revision
	if git.Dirty {
		b.revisions[runID] += "+"
	}
}

// Document adds what a command prints with --format json. If the document cannot be made, the page shows the error.
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

// Device adds a device's blocks. If all blocks would make the page too large, the page shows the points and the blocks
// that are live in the window.
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
		// Text beyond these bounds hardly ever fits into a page.
		if len(text) <= MostBytes && b.held[level]+len(text) <= mostHeld {
			out.encoded[level] = strings.Clone(text) // without the room that the builder had to spare
			b.held[level] += len(text)
		}
		if len(text) < smallDevice {
			break
		}
	}
	return nil
}

// packed is what write writes, compressed, as text.
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

// choose gives each device the most detail that fits. All devices get points before one device gets its blocks.
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

// A category is what the page knows of one category.
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

// Write writes the page with at most so many bytes. Devices get the detail that fits.
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
	// JSON has <, > and & escaped, so no name can end the element that contains it.
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

// head begins the page.
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

// about is what the page knows of itself.
func (b *Builder) about() ([]byte, error) {
	return json.Marshal(map[string]any{"title": b.title, "categories": categories(), "devices": b.devices,
		"missing": b.missing, "revisions": b.revisions})
}

// policy lets the page run only its own program. A page from a file loads nothing, a served page only what its
// server sends.
func policy(served bool) string {
	sum := sha256.Sum256(web.Script())
	text := "default-src 'none'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
	if served {
		text += "; connect-src 'self'"
	}
	return text
}
