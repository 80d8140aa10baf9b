package examples_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/ingest"
	"github.com/dpsight/dpsight/ingest/ingesttest"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// forbidden matches text that a published recording must not have, such as paths, addresses and variables of the
// machine.
var forbidden = []*regexp.Regexp{
	regexp.MustCompile(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), // the UUID of a GPU
	regexp.MustCompile(`/(root|home|tmp|opt|usr|mnt|data|work|var|Users)/`),
	regexp.MustCompile(`\b[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\b`),
	regexp.MustCompile(`(?i)[a-z0-9._-]+@[a-z0-9-]+\.[a-z]`),
	regexp.MustCompile(`(?i)(hostname|LD_LIBRARY_PATH|SSH_|USER=|HOME=)`),
}

// names matches usual names of virtual machines, of their images and of their users. The test searches only recordings
// for them, since a workflow may name an image. The test cannot search for the machines' and users' real names, which
// were replaced and are no longer known.
var names = []*regexp.Regexp{
	regexp.MustCompile(`(?i)\b(root|ubuntu|debian|admin|user|ec2-user)@`),
	regexp.MustCompile(`\b(vm|ubuntu|debian|localdomain|runnervm[a-z0-9]*)\b`),
	regexp.MustCompile(
		`(?i)\b((vm|instance|runner|node|worker|pod|compute|h[12]00)-?[0-9][a-z0-9-]*[0-9]|ip-[0-9]+(-[0-9]+)+)\b`),
	regexp.MustCompile(`(?i)\b[a-z0-9-]+\.(internal|local|lan|localdomain|amazonaws|cloudapp)\b`),
	regexp.MustCompile(`~/|/home/`),
}

var allowed = regexp.MustCompile(`^00000000-0000-0000-0000-`)

// packaged matches files of stack frames inside a Python environment. The test skips them, since torch has folders
// with forbidden names.
var packaged = regexp.MustCompile(`/(site|dist)-packages/[\w./+-]+`)

// Published recordings have these names in place of the host's and the GPUs' own.
const (
	publishedHost = "gpu-host"
	publishedGPU  = "GPU-00000000-0000-0000-0000-"
)

// No file in examples reveals on which machine a recording was made. The test unpacks journals and reads every text
// column of every table.
func TestSanitised(t *testing.T) {
	kinds, tables, rows := map[string]int{}, map[string]bool{}, 0
	recordings := storeFolders(t)
	check := func(name string, b []byte) {
		search := forbidden
		if folder, _, _ := strings.Cut(filepath.ToSlash(name), "/"); slices.Contains(recordings, folder) {
			search = slices.Concat(forbidden, names)
		}
		b = packaged.ReplaceAll(b, nil)
		for _, re := range search {
			for _, hit := range re.FindAll(b, 5) {
				if !allowed.Match(hit) {
					t.Errorf("%s holds %q", name, hit)
				}
			}
		}
	}
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".go") {
			return err
		}
		kinds[filepath.Ext(path)]++
		switch {
		case strings.HasSuffix(path, ".dps.zst"):
			marks, frames, err := spool.Unpack(path)
			if err != nil {
				return err
			}
			check(path, printable(marks))
			check(path, printable(frames))
		case strings.HasSuffix(path, ".parquet"):
			tables[filepath.Base(path)] = true
			text, err := ingesttest.Text(path)
			if err != nil {
				return err
			}
			check(path, text)
			if id := filepath.Base(filepath.Dir(path)); bytes.Contains(text, []byte(id)) {
				rows++
			}
		default:
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			check(path, b)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if kinds[".zst"] < 6 || kinds[".json"] < 12 || kinds[".log"] < 6 {
		t.Errorf("searched %v: the stores lack files", kinds)
	}
	if rows < kinds[".parquet"]/2 { // every row has its run's id; some tables have no rows
		t.Errorf("of %d tables %d have text: the search does not see it", kinds[".parquet"], rows)
	}
	for _, name := range append(ingest.DerivedFiles(), schemas.Samples.File(), schemas.HostSamples.File()) {
		if strings.HasSuffix(name, ".parquet") && !tables[name] && !newerTable(name) {
			t.Errorf("no %s was searched", name)
		}
	}
}

// The patterns of TestSanitised match the texts that they are meant to find, and not texts that may be published.
func TestSanitisedSees(t *testing.T) {
	for _, text := range []string{"root@vm:~#", `{"name": "vm"}`, "cd ~/code", "/home/alice/x", "ip-10-0-0-12",
		"node-17 ready", "gpu7.internal", "on runnervm4x", "h100-3a-7",
		"/root/train.py", "10.1.2.3", "GPU-12345678-1234-1234-1234-123456789012", "user@host"} {
		if !slices.ContainsFunc(slices.Concat(forbidden, names), func(re *regexp.Regexp) bool {
			return re.MatchString(text)
		}) {
			t.Errorf("%q may be published", text)
		}
	}
	for _, text := range []string{"nvml", "NVIDIA H200", publishedHost, "torch 2.11.0", "vanilla-seq_len1024", "h200",
		"decoder.layers.3"} {
		if i := slices.IndexFunc(slices.Concat(forbidden, names), func(re *regexp.Regexp) bool {
			return re.MatchString(text)
		}); i >= 0 {
			t.Errorf("%q may not be published, by rule %d", text, i)
		}
	}
}

// Manifests have replacement names for the host and its GPUs, and no revision.
func TestManifestsAreSanitised(t *testing.T) {
	for path, m := range manifests(t) {
		if m.Host.Name != publishedHost || m.Git != nil {
			t.Errorf("%s: host %q, git %+v", path, m.Host.Name, m.Git)
		}
		if len(m.GPUs) == 0 {
			t.Errorf("%s: no GPU", path)
		}
		for _, g := range m.GPUs {
			if !strings.HasPrefix(g.UUID, publishedGPU) {
				t.Errorf("%s: GPU %s", path, g.UUID)
			}
		}
	}
}

// Recordings must stay small, since everybody who clones the repository gets them. storeLimits bounds the bytes of
// each store.
var storeLimits = map[string]int64{
	"accuracy-development": 1 << 20, "accuracy-held-out": 1 << 20, "accuracy-held-out-fixed-kinds": 1 << 20,
	"accuracy-held-out-missed-kinds": 1 << 20, "accuracy-held-out-worst-kind": 1 << 20, "claims": 1 << 20,
	collectorAlone: 1 << 20, headline: 8 << 20, "headline-batch": 4 << 20, "lora": 1 << 20, "mlp": 1 << 20,
	pairs: 1 << 20, plain: 2 << 20, "oom": 1 << 20, "quick": 1 << 20, "seq": 1 << 20, "stacks": 1 << 20,
	"trainers": 4 << 20,
}

const (
	allStoresLimit = 18 << 20
	// exampleLimit bounds the six runs of the first example: three methods, each with its bare run.
	exampleLimit = 5_000_000
)

func TestSizes(t *testing.T) {
	var all, example int64
	for _, folder := range storeFolders(t) {
		var total int64
		for path, m := range manifestsOf(t, folder) {
			size := sizeOf(t, filepath.Dir(path))
			total += size
			if method, _ := m.Params["method"].(string); folder == headline &&
				slices.Contains([]string{"vanilla", "dpsgd", "ghost"}, method) {
				example += size
			}
		}
		t.Logf("%s: %d bytes", folder, total)
		if limit, ok := storeLimits[folder]; !ok || total > limit {
			t.Errorf("%s: %d bytes, at most %d", folder, total, limit)
		}
		all += total
	}
	if all > allStoresLimit {
		t.Errorf("all recordings take %d bytes, at most %d", all, int64(allStoresLimit))
	}
	t.Logf("vanilla, dpsgd and ghost of %s: %d bytes", headline, example)
	if example == 0 || example > exampleLimit {
		t.Errorf("vanilla, dpsgd and ghost of %s take %d bytes, at most %d", headline, example, exampleLimit)
	}
}

// sizeOf returns the bytes of all files in a run's folder.
func sizeOf(t *testing.T, dir string) (total int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return total
}

// printable returns the text in binary data: each stretch of at least eight printable characters, as a line.
func printable(b []byte) []byte {
	var out []byte
	for begin := 0; begin < len(b); {
		end := begin
		for end < len(b) && b[end] >= ' ' && b[end] <= '~' {
			end++
		}
		if end-begin >= 8 {
			out = append(append(out, b[begin:end]...), '\n')
		}
		begin = end + 1
	}
	return out
}
