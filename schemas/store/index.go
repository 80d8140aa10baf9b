package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // the SQL driver of the index

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/dense"
)

// A store of many runs has an index: the manifests and the summaries of its runs in one file, so that a list of ten
// thousand runs opens one file instead of thirty thousand. The index is only a cache. An entry is valid only while the
// run's folder and documents have the same sizes and times as when the entry was made, and while its checksum is right.
// Otherwise dpsight reads the run folder and corrects the index. dpsight makes an unreadable index again. If no index
// can be written, dpsight reads all run folders.

const (
	// IndexFile is the index's name in its store.
	IndexFile = ".index.sqlite"
	// LeastIndexed is the smallest number of runs for which a store gets an index. With fewer runs, reading the run
	// folders is as fast.
	LeastIndexed = 100

	indexVersion = 5               // version of the index's tables
	settled      = 2 * time.Second // a younger file may change again within one tick of the clock
	busy         = 2 * time.Second // how long to wait for another dpsight that writes
)

// index is the open index of a store. A nil index has no documents and ignores writes.
type index struct {
	db     *sql.DB
	path   string
	broken bool // the index file cannot be read and is removed
}

// openIndex opens or makes the index of a store. The index lies in the store or, if the store cannot be written or is
// on another machine, in the user's cache folder. openIndex returns nil if neither is possible.
func openIndex(store string) *index {
	store = absolute(store)
	var paths []string
	if !remote(store) {
		paths = append(paths, filepath.Join(store, IndexFile))
	}
	if cache, err := os.UserCacheDir(); err == nil {
		sum := sha256.Sum256([]byte(store))
		paths = append(paths, filepath.Join(cache, "dpsight", "index", hex.EncodeToString(sum[:8])+".sqlite"))
	}
	for i, path := range paths {
		if i > 0 || remote(store) {
			if os.MkdirAll(filepath.Dir(path), 0o700) != nil {
				continue
			}
		}
		for range 2 {
			x, err := openIndexAt(path)
			if err == nil {
				return x
			}
			if isBusy(err) || !corrupt(path) {
				break
			}
			os.Remove(path)
		}
	}
	return nil
}

// openIndexAt opens an index file, and creates the tables of this version if they are missing.
func openIndexAt(path string) (*index, error) {
	// SQLite would open a damaged file that it cannot write for reading only, and so could not repair it.
	if f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err
	} else {
		f.Close()
	}
	name := url.URL{Scheme: "file", Opaque: (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath(),
		RawQuery: fmt.Sprintf("_pragma=busy_timeout(%d)&_pragma=synchronous(off)&_txlock=immediate", busy.Milliseconds())}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	x := &index{db: db, path: path}
	var version int
	if err := db.QueryRow("PRAGMA user_version").Scan(&version); err != nil {
		db.Close()
		return nil, err
	}
	if version == indexVersion {
		return x, nil
	}
	err = x.write(func(tx *sql.Tx) error {
		for _, table := range append(slices.Clone(perRun), tableOrigins) {
			if _, err := tx.Exec("DROP TABLE IF EXISTS " + table); err != nil {
				return err
			}
			if _, err := tx.Exec("CREATE TABLE " + table + " (first TEXT PRIMARY KEY, sum INTEGER NOT NULL, " +
				"data BLOB NOT NULL)"); err != nil {
				return err
			}
		}
		_, err := tx.Exec(fmt.Sprintf("PRAGMA user_version = %d", indexVersion))
		return err
	})
	if err != nil {
		db.Close()
		return nil, err
	}
	return x, nil
}

// The tables of an index. Each table except tableOrigins has one document for each run folder, encoded by [dense]. Many
// runs share an origin, so tableOrigins holds the JSON of each origin once, by digest, and documents begin with their
// origin's digest. The origin of a deleted run stays, since the next run is likely to have the same origin.
const (
	tableManifests = "manifests" // manifests of runs, without the parts that only an analysis of the run needs
	tableRows      = "listed"    // [schemas.Summary.Row]
	tableCompared  = "compared"  // [schemas.Summary.Compared] without its phases
	tablePhases    = "phases"    // the phases of tableCompared, which few commands read
	tableOrigins   = "origins"   // [schemas.Summary.Origin]
)

var perRun = []string{tableManifests, tableRows, tableCompared, tablePhases}

// corrupt reports whether the file with the index's name is no valid index. dpsight may remove this file, since no
// other program uses the name.
func corrupt(path string) bool {
	st, err := os.Lstat(path)
	return err == nil && st.Mode().IsRegular() && st.Size() > 0
}

func isBusy(err error) bool {
	text := err.Error()
	return strings.Contains(text, "SQLITE_BUSY") || strings.Contains(text, "locked")
}

// Close closes the index, and removes it if it was found broken.
func (x *index) Close() {
	if x == nil {
		return
	}
	x.db.Close()
	if x.broken {
		os.Remove(x.path)
	}
}

// failed returns err, and marks the index as broken if err says that its file is no index or is damaged.
func (x *index) failed(err error) error {
	if err != nil && (strings.Contains(err.Error(), "malformed") || strings.Contains(err.Error(), "not a database")) {
		x.broken = true
	}
	return err
}

// write makes changes to the index in one transaction: all or none of them.
func (x *index) write(change func(*sql.Tx) error) error {
	tx, err := x.db.BeginTx(context.Background(), nil)
	if err != nil {
		return err
	}
	if err := change(tx); err != nil {
		tx.Rollback()
		return err
	}
	return tx.Commit()
}

// listing is the entry of the index for a run in tableManifests: a brief manifest, and the tags.
type listing struct {
	*schemas.Manifest
	Tags []string `json:"tags,omitempty"`
}

// brief returns a copy of a manifest with only the fields that selecting runs needs, --where included.
func brief(m *schemas.Manifest) *schemas.Manifest {
	b := &schemas.Manifest{RunID: m.RunID, Name: m.Name, Source: m.Source, Profile: m.Profile, Status: m.Status,
		Reason: m.Reason, Command: m.Command, Params: m.Params, Bare: m.Bare, Suite: m.Suite, Start: m.Start, End: m.End,
		GPUs: m.GPUs, Host: schemas.Host{Name: m.Host.Name}, Driver: m.Driver, Git: m.Git,
		Collector: schemas.Collector{Version: m.Collector.Version}}
	if e := m.Environment; e != nil {
		b.Environment = &schemas.Environment{Torch: e.Torch, CUDA: e.CUDA, Opacus: e.Opacus}
	}
	if m.Phantom != nil {
		b.Phantom = &schemas.Phantom{Collections: m.Phantom.Collections}
	}
	return b
}

// indexedRuns returns the runs in the folders of a store with many runs. The runs' manifests may be brief; [Load] reads
// the whole manifests.
func (s *Store) indexedRuns(dirs []string) (runs []Run, damaged []Damaged) {
	x := openIndex(s.dir)
	defer x.Close()
	now := time.Now()
	runs = make([]Run, len(dirs))
	failed := make([]error, len(dirs))
	has := make([]documents, len(dirs))
	files := statIn(s.dir)
	defer files.close()
	inParallel(len(dirs), func(i int) { runs[i].stamp, has[i] = files.stampOf(filepath.Base(dirs[i]), now) })
	place := make(map[string]int, len(dirs))
	for i, dir := range dirs {
		place[filepath.Base(dir)] = i
	}
	var readers dense.Readers
	var mu sync.Mutex
	var gone []string // folders that are in the index and not in the store
	x.each(tableManifests, func(folder, stamp, data []byte) {
		i, ok := place[string(folder)]
		if !ok {
			mu.Lock()
			defer mu.Unlock()
			gone = append(gone, string(folder))
			return
		}
		l := listing{Manifest: new(schemas.Manifest)}
		if r := &runs[i]; has[i].manifest && r.stamp != "" && r.stamp == string(stamp) &&
			readers.Unmarshal(data, &l) == nil {
			r.ID, r.Manifest, r.Tags, r.brief = l.RunID, l.Manifest, l.Tags, true
		}
	})
	written := make([][]byte, len(dirs)) // documents that the index does not have
	inParallel(len(dirs), func(i int) {
		r := &runs[i]
		if !has[i].manifest || r.brief {
			return
		}
		stamp := r.stamp
		*r, failed[i] = OpenRun(dirs[i])
		if r.stamp = stamp; failed[i] != nil || stamp == "" || x == nil {
			return
		}
		// The brief manifest takes about a tenth of a whole manifest's memory, and shares equal parts with other
		// manifests.
		l := listing{Manifest: new(schemas.Manifest)}
		if data, err := dense.Marshal(&listing{brief(r.Manifest), r.Tags}); err == nil && readers.Unmarshal(data, &l) == nil {
			r.Manifest, r.Tags, r.brief, written[i] = l.Manifest, l.Tags, true, data
		}
	})
	fresh := map[string]entry{}
	all := runs
	runs = all[:0]
	for i, dir := range dirs {
		r := all[i]
		switch {
		case failed[i] != nil:
			damaged = append(damaged, Damaged{Dir: dir, Err: failed[i]})
			continue
		case r.Manifest == nil: // the folder has no run
			continue
		}
		r.Dir, r.listed, r.ingested = dir, true, has[i].report
		runs = append(runs, r)
		if written[i] != nil {
			fresh[filepath.Base(dir)] = entry{r.stamp, written[i]}
		}
	}
	x.keep(tableManifests, fresh, gone)
	return runs, damaged
}

// inParallel calls do for each index from 0 up to n, on all processors.
func inParallel(n int, do func(i int)) {
	var wg sync.WaitGroup
	workers := min(n, runtime.GOMAXPROCS(0))
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n; i += workers {
				do(i)
			}
		})
	}
	wg.Wait()
}

// A KeptKind names a part of a summary that the index keeps separately.
type KeptKind string

// The values of [KeptKind].
const (
	KeptRow      KeptKind = tableRows
	KeptCompared KeptKind = tableCompared
	KeptPhases   KeptKind = tablePhases
)

const digestSize = 32 // length of an origin's digest, in hexadecimal digits

// digestOf returns the digest by which the index names an origin.
func digestOf(origin []byte) string {
	sum := sha256.Sum256(origin)
	return hex.EncodeToString(sum[:])[:digestSize]
}

// Kept calls decode with the kept document of each selected run. i is the run's index in the selection, and several
// calls run at once. decoded[i] is true if decode was called for run i and returned true. If decoded[i] is false, the
// caller must read the tables of run i: no document is kept of the run, or the user must learn something about its
// tables. In a store of many runs, Kept makes and stores missing documents.
func (sel *Selection) Kept(k Keeper, kind KeptKind, decode func(i int, origin, data []byte) bool) (decoded []bool) {
	decoded = make([]bool, len(sel.Runs))
	read := func(i int, p *Packed) {
		if p == nil {
			return
		}
		decoded[i] = decode(i, p.Origin, p.Parts[kind])
	}
	stores := map[string][]int{}
	for i, r := range sel.Runs {
		if !r.listed || r.ingested {
			dir := filepath.Dir(r.Dir)
			stores[dir] = append(stores[dir], i)
		}
	}
	for dir, places := range stores {
		var x *index
		var origins map[string]entry
		if slices.ContainsFunc(places, func(i int) bool { return sel.Runs[i].listed }) {
			x = openIndex(dir)
			origins = x.read(tableOrigins)
		}
		asked := make(map[string]int, len(places))
		for _, i := range places {
			asked[filepath.Base(sel.Runs[i].Dir)] = i
		}
		x.each(string(kind), func(folder, stamp, data []byte) {
			i, ok := asked[string(folder)]
			if !ok || !holds(stamp, sel.Runs[i].stamp, k.Version) {
				return
			}
			name := data[:min(digestSize, len(data))]
			if o, ok := origins[string(name)]; ok {
				decoded[i] = decode(i, o.data, data[len(name):])
			}
		})
		lacking := 0
		for _, i := range places {
			if !decoded[i] && sel.Runs[i].listed {
				lacking++
			}
		}
		var done atomic.Int64
		for places := range slices.Chunk(places, madeAtOnce) {
			made := make([]*Packed, len(places))
			inParallel(len(places), func(p int) {
				i := places[p]
				r := sel.Runs[i]
				switch {
				case decoded[i]:
				case r.listed:
					made[p] = k.packed(k.summary(r))
					read(i, made[p])
					k.tell(int(done.Add(1)), lacking)
				default: // a small store has no index: checking all its tables for damage takes little time
					if s := k.read(r); s != nil && intact(r) {
						read(i, k.packed(s))
					}
				}
			})
			x.keepMade(dir, sel.Runs, places, made, k.Version, origins)
		}
		x.Close()
	}
	return decoded
}

// madeAtOnce is how many new summaries are in memory before they are written to the index.
const madeAtOnce = 8 * chunkRuns

// tell reports, now and then, how many of the missing summaries have been made.
func (k *Keeper) tell(done, of int) {
	const every = 16
	if k.Doing != nil && of >= LeastIndexed && (done%every == 0 || done == of) {
		k.Doing(done, of)
	}
}

// keepMade writes the new summaries of runs in a store to the index. places has the runs' indexes, and made their
// summaries. keepMade also adds the runs' origins to the index.
func (x *index) keepMade(dir string, runs []Run, places []int, made []*Packed, version int, origins map[string]entry) {
	if x == nil {
		return
	}
	fresh, parts := map[string]entry{}, map[KeptKind]map[string]entry{}
	now, files := time.Now(), statIn(dir)
	defer files.close()
	for p, s := range made {
		r := runs[places[p]]
		if s == nil {
			continue
		}
		// A summary that was just written has changed its run folder, so the folder's stamp is not reliable yet. So the index
		// stores this summary only when it is next used.
		stamp, _ := files.stampOf(filepath.Base(r.Dir), now)
		if stamp == "" || stamp != r.stamp {
			continue
		}
		name := digestOf(s.Origin)
		for kind, data := range s.Parts {
			if parts[kind] == nil {
				parts[kind] = map[string]entry{}
			}
			parts[kind][filepath.Base(r.Dir)] = entry{stampedKept(stamp, version), append([]byte(name), data...)}
		}
		if _, ok := origins[name]; !ok {
			fresh[name] = entry{"", s.Origin}
		}
	}
	x.keep(tableOrigins, fresh, nil)
	maps.Copy(origins, fresh)
	for kind, documents := range parts {
		x.keep(string(kind), documents, nil)
	}
}

// stampedKept returns the stamp of a kept document: the run folder's stamp with the document's version.
func stampedKept(stamp string, version int) string {
	return stamp + string(binary.BigEndian.AppendUint32(nil, uint32(version)))
}

// holds reports whether a kept document has the given version and belongs to the present state of the run, which stamp
// identifies.
func holds(kept []byte, stamp string, version int) bool {
	n := len(kept) - 4
	return stamp != "" && n == len(stamp) && string(kept[:n]) == stamp &&
		binary.BigEndian.Uint32(kept[n:]) == uint32(version)
}

// byAge sorts runs by their start, oldest first.
func byAge(runs []Run) {
	slices.SortFunc(runs, func(a, b Run) int {
		return cmp.Or(a.Manifest.Start.Compare(b.Manifest.Start), cmp.Compare(a.ID, b.ID))
	})
}
