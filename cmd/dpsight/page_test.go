package main

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/klauspost/compress/gzip"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/report/page"
	"github.com/dpsight/dpsight/schemas"
)

// part returns the packed text of one part of an HTML page: of the script element with this id.
func part(t *testing.T, text []byte, id string) []byte {
	t.Helper()
	m := regexp.MustCompile(`(?s)<script type="text/plain" id="` + id + `">(.*?)</script>`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("the page has no part %s", id)
	}
	return m[1]
}

// unpacked decodes and unzips the packed text of a part of an HTML page.
func unpacked(t *testing.T, text []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// tablesOf decodes the Arrow tables that an HTML page has for a device, by name.
func tablesOf(t *testing.T, data []byte) map[string]arrow.Record {
	t.Helper()
	out := map[string]arrow.Record{}
	for len(data) > 0 {
		n := binary.LittleEndian.Uint32(data)
		r, err := ipc.NewReader(bytes.NewReader(data[4 : 4+n]))
		if err != nil {
			t.Fatal(err)
		}
		name, _ := r.Schema().Metadata().GetValue("table")
		record, err := r.Read()
		if err != nil {
			t.Fatal(name, err)
		}
		record.Retain()
		out[name] = record
		data = data[4+n:]
	}
	return out
}

func columnOf[A arrow.Array](t *testing.T, r arrow.Record, name string) A {
	t.Helper()
	a, ok := r.Column(r.Schema().FieldIndices(name)[0]).(A)
	if !ok {
		t.Fatalf("column %s is of another type", name)
	}
	return a
}

// The HTML page of a report is one small file that loads nothing. The page's documents equal the JSON documents that
// the commands print. For each device, the sums of the page's pieces at the peak equal the breakdown.
func TestPage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.html")
	must(t, "", "report", "--store", headlineStore, "--html", file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", len(text))
	if len(text) > page.MostBytes {
		t.Errorf("the page has %d bytes, over %d", len(text), page.MostBytes)
	}
	shell := regexp.MustCompile(`(?s)<(script|style)>.*?</(script|style)>`).ReplaceAll(text, nil)
	if m := regexp.MustCompile(`(?i)(src|href|action)="?[^d">][^>]{0,40}`).Find(shell); m != nil {
		t.Errorf("the page loads %s", m)
	}
	if !bytes.Contains(text, []byte(`content="default-src 'none'; script-src 'sha256-`)) {
		t.Error("the page has no policy")
	}
	var documents map[string]json.RawMessage
	if err := json.Unmarshal(unpacked(t, part(t, text, "documents")), &documents); err != nil {
		t.Fatal(err)
	}
	for name, command := range map[string][]string{
		"runs": {"runs"}, "breakdown": {"analyze", "breakdown"}, "overhead": {"analyze", "overhead"},
		"findings": {"analyze", "findings"}, "ladder": {"analyze", "ladder"}, "phases": {"analyze", "phases"},
		"cost": {"analyze", "cost"}, "time": {"analyze", "time", "--fold", "--top", "0"},
	} {
		printed := must(t, "", append(command, "--store", headlineStore, "--format", "json")...)
		var want, got any
		if err := json.Unmarshal([]byte(printed.stdout), &want); err != nil {
			t.Fatal(name, err)
		}
		if err := json.Unmarshal(documents[name], &got); err != nil {
			t.Fatal(name, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s is not what %v prints", name, command)
		}
	}
	var about struct {
		Devices []struct {
			RunID  string `json:"run_id"`
			Device string `json:"device"`
			Detail string `json:"detail"`
		} `json:"devices"`
	}
	if err := json.Unmarshal(part(t, text, "about"), &about); err != nil {
		t.Fatal(err)
	}
	var breakdown memory.BreakdownDocument
	if err := json.Unmarshal(documents["breakdown"], &breakdown); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for i, d := range about.Devices {
		if d.Detail != page.DetailAll {
			t.Errorf("%s is shown in detail %q", d.RunID, d.Detail)
			continue
		}
		tables := tablesOf(t, unpacked(t, part(t, text, "device-"+strconv.Itoa(i))))
		for _, run := range breakdown.Runs {
			for _, want := range run.Devices {
				if run.RunID == d.RunID && want.Device == d.Device {
					checkPieces(t, run.Name, tables, &want)
					compared++
				}
			}
		}
	}
	if compared < 7 {
		t.Errorf("%d devices were compared", compared)
	}
	foreign := filepath.Join(t.TempDir(), "notes.html")
	if err := os.WriteFile(foreign, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := dpsight(t, "", "report", "--store", headlineStore, "--html", foreign)
	if r.code == exitDone || !strings.Contains(r.stderr, "no report wrote it") {
		t.Errorf("a file that is no page is written over: %d, %s", r.code, r.stderr)
	}
}

// checkPieces checks that a page's pieces of blocks that are live at the peak sum to the breakdown, category by
// category.
func checkPieces(t *testing.T, name string, tables map[string]arrow.Record, want *memory.DeviceBreakdown) {
	t.Helper()
	pieces, kinds := tables["pieces"], tables["kinds"]
	kind, begin := columnOf[*array.Uint32](t, pieces, "kind"), columnOf[*array.Int32](t, pieces, "begin")
	life, place := columnOf[*array.Uint32](t, pieces, "life"), columnOf[*array.Uint8](t, kinds, "category")
	requested, slack := columnOf[*array.Float64](t, kinds, "requested"), columnOf[*array.Float64](t, kinds, "slack")
	got, from := map[schemas.Category]int64{}, int64(0)
	for i := range kind.Len() {
		from += int64(begin.Value(i))
		if n := int64(life.Value(i)); from > want.At.Event || n != 0 && from+n <= want.At.Event {
			continue
		}
		k := int(kind.Value(i))
		got[schemas.Categories[place.Value(k)]] += int64(requested.Value(k))
		got[schemas.Slack] += int64(slack.Value(k))
	}
	for _, c := range want.Categories {
		if got[c.Category] != c.Bytes {
			t.Errorf("%s: %d bytes of %s at the peak, want %d", name, got[c.Category], c.Category, c.Bytes)
		}
		delete(got, c.Category)
	}
	for c, bytes := range got {
		if bytes != 0 {
			t.Errorf("%s: %d bytes of %s, which the breakdown does not have", name, bytes, c)
		}
	}
}
