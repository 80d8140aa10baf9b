package store

import (
	"bytes"
	"cmp"
	"database/sql"
	"encoding/binary"
	"hash/crc32"
	"maps"
	"runtime"
	"slices"
	"sync"
)

// The documents of an index are stored in chunks of many runs, since SQLite takes as long to read a row as dpsight
// takes to decode a document. In the order of folder names, a chunk holds the runs from its first folder up to, but not
// including, the next chunk's first folder. Adding a run usually changes only the last chunk.

// chunkRuns is how many runs a new chunk has. A chunk is divided when it has twice that many runs.
const chunkRuns = 512

// entry is a document of a run folder as the index has it.
type entry struct {
	stamp string
	data  []byte
}

// readChunk calls use with each document of a chunk. readChunk ignores everything after a document that cannot be read.
func readChunk(b []byte, use func(folder, stamp, data []byte)) {
	field := func() []byte {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			b = nil
			return nil
		}
		f := b[size : size+int(n) : size+int(n)]
		b = b[size+int(n):]
		return f
	}
	for len(b) > 0 {
		folder, stamp := field(), field()
		use(folder, stamp, field())
	}
}

// into returns a function that adds a document to all, by its folder.
func into(all map[string]entry) func(folder, stamp, data []byte) {
	return func(folder, stamp, data []byte) { all[string(folder)] = entry{string(stamp), data} }
}

func appendChunk(b []byte, folder string, e entry) []byte {
	b = append(binary.AppendUvarint(b, uint64(len(folder))), folder...)
	b = append(binary.AppendUvarint(b, uint64(len(e.stamp))), e.stamp...)
	return append(binary.AppendUvarint(b, uint64(len(e.data))), e.data...)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns the checksum of a chunk and of its first folder's name. A chunk with a wrong checksum is ignored.
func checksum(first string, data []byte) int64 {
	sum := crc32.Update(0, castagnoli, []byte(first))
	sum = crc32.Update(sum, castagnoli, []byte{0})
	return int64(crc32.Update(sum, castagnoli, data))
}

// read returns the documents of an index's table, by folder.
func (x *index) read(table string) map[string]entry {
	out := map[string]entry{}
	x.chunks(table, func(chunk []byte) { readChunk(bytes.Clone(chunk), into(out)) })
	return out
}

// each calls use with each document of an index's table, for several chunks at once. A document is valid only until use
// returns, so that only a few chunks are in memory.
func (x *index) each(table string, use func(folder, stamp, data []byte)) {
	workers := runtime.GOMAXPROCS(0)
	full, empty := make(chan []byte), make(chan []byte, workers+1)
	for range workers + 1 {
		empty <- nil
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for chunk := range full {
				readChunk(chunk, use)
				empty <- chunk[:0]
			}
		})
	}
	x.chunks(table, func(chunk []byte) { full <- append(<-empty, chunk...) })
	close(full)
	wg.Wait()
}

// chunks calls use with each undamaged chunk of a table. A chunk is valid until use returns. After an error, chunks
// stops; callers then read the remaining documents from the run folders.
func (x *index) chunks(table string, use func(chunk []byte)) {
	if x == nil {
		return
	}
	rows, err := x.db.Query("SELECT first, sum, data FROM " + table)
	if x.failed(err) != nil {
		return
	}
	defer rows.Close()
	for rows.Next() {
		var first string
		var sum int64
		var data sql.RawBytes
		if x.failed(rows.Scan(&first, &sum, &data)) != nil {
			return
		}
		if checksum(first, data) == sum {
			use(data)
		}
	}
	x.failed(rows.Err())
}

// keep writes documents to a table. keep also removes the documents of deleted run folders from all tables that have
// one document for each run. keep ignores errors, since the next use of the index repairs it.
func (x *index) keep(table string, fresh map[string]entry, gone []string) {
	if x == nil || len(fresh) == 0 && len(gone) == 0 {
		return
	}
	x.failed(x.write(func(tx *sql.Tx) error {
		if len(gone) > 0 {
			for _, other := range perRun {
				if other != table {
					if err := change(tx, other, nil, gone); err != nil {
						return err
					}
				}
			}
		}
		return change(tx, table, fresh, gone)
	}))
}

// change rewrites the chunks that contain the folders of fresh and gone.
func change(tx *sql.Tx, table string, fresh map[string]entry, gone []string) error {
	firsts, err := firstsOf(tx, table)
	if err != nil {
		return err
	}
	changed := map[string][]string{} // the changed folders, by the first folder of their chunk
	for _, folder := range slices.Concat(slices.Collect(maps.Keys(fresh)), gone) {
		at, found := slices.BinarySearch(firsts, folder)
		if !found {
			at = max(at-1, 0)
		}
		first := ""
		if len(firsts) > 0 {
			first = firsts[at]
		}
		changed[first] = append(changed[first], folder)
	}
	for first, folders := range changed {
		all := map[string]entry{}
		var sum int64
		var data []byte
		switch err := tx.QueryRow("SELECT sum, data FROM "+table+" WHERE first = ?", first).Scan(&sum, &data); {
		case err == sql.ErrNoRows: // the table is empty
		case err != nil:
			return err
		case checksum(first, data) == sum:
			readChunk(data, into(all))
		}
		for _, folder := range folders {
			if e, ok := fresh[folder]; ok {
				all[folder] = e
			} else {
				delete(all, folder)
			}
		}
		if _, err := tx.Exec("DELETE FROM "+table+" WHERE first = ?", first); err != nil {
			return err
		}
		if err := put(tx, table, all); err != nil {
			return err
		}
	}
	return nil
}

// firstsOf returns the first folder of each chunk of a table, in order. A chunk's first folder is the chunk's name.
func firstsOf(tx *sql.Tx, table string) (firsts []string, err error) {
	rows, err := tx.Query("SELECT first FROM " + table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var first string
		if err := rows.Scan(&first); err != nil {
			return nil, err
		}
		firsts = append(firsts, first)
	}
	slices.SortFunc(firsts, cmp.Compare[string])
	return firsts, rows.Err()
}

// put writes the documents of one chunk, or of several if they are too many for one.
func put(tx *sql.Tx, table string, all map[string]entry) error {
	folders := slices.Sorted(maps.Keys(all))
	size := chunkRuns
	if len(folders) < 2*chunkRuns {
		size = 2 * chunkRuns
	}
	for part := range slices.Chunk(folders, size) {
		var b []byte
		for _, folder := range part {
			b = appendChunk(b, folder, all[folder])
		}
		if _, err := tx.Exec("INSERT OR REPLACE INTO "+table+" VALUES (?, ?, ?)", part[0], checksum(part[0], b),
			b); err != nil {
			return err
		}
	}
	return nil
}
