package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/dpsight/dpsight/schemas"
)

const (
	// The folder has the journals of the run's processes, from which dpsight ingest can make the tables again.
	Dir          = "spool"
	marksSuffix  = ".marks"
	framesSuffix = ".frames"
	sealedSuffix = ".dps.zst"
)

// SealedName is the file name of a rank's sealed journal.
func SealedName(rank int32) string { return fmt.Sprintf("rank-%d%s", rank, sealedSuffix) }

// LiveJournals lists the marks files of unsealed journals in a spool folder, oldest name first. An absent folder has
// no journals.
func LiveJournals(dir string) ([]string, error) {
	return list(dir, marksSuffix)
}

// SealedJournals lists the sealed journals of a spool folder.
func SealedJournals(dir string) ([]string, error) {
	return list(dir, sealedSuffix)
}

func list(dir, suffix string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out, nil
}

// OpenLive reads an unsealed journal, even while its process runs. A torn end may be complete at a later call.
func OpenLive(marksPath string) (*Journal, error) {
	marks, err := schemas.ReadRegular(marksPath)
	if err != nil {
		return nil, err
	}
	frames, err := schemas.ReadRegular(framesOf(marksPath))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	j, err := Parse(marks, frames)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(marksPath), err)
	}
	j.Path = marksPath
	return j, nil
}

// LastFrame returns the time at which the last frame of an unsealed journal was written.
func LastFrame(marksPath string) (time.Time, error) {
	st, err := os.Stat(framesOf(marksPath))
	if err != nil {
		return time.Time{}, err
	}
	return st.ModTime(), nil
}

// OpenSealed reads a sealed journal.
func OpenSealed(path string) (*Journal, error) {
	marks, frames, err := Unpack(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	j, err := Parse(marks, frames)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	j.Path = path
	if _, err := fmt.Sscanf(filepath.Base(path), "rank-%d", &j.Rank); err != nil {
		return nil, fmt.Errorf("%s: the name of a sealed journal is rank-N%s", filepath.Base(path), sealedSuffix)
	}
	return j, nil
}

// ReadDir reads all journals of a spool folder, sealed and live, in order of rank. A live journal gets the rank that
// [Seal] would give it.
func ReadDir(dir string) ([]*Journal, error) {
	sealed, err := SealedJournals(dir)
	if err != nil {
		return nil, err
	}
	var out []*Journal
	for _, p := range sealed {
		j, err := OpenSealed(p)
		if err != nil {
			return nil, err
		}
		out = append(out, j)
	}
	live, err := readLive(dir)
	if err != nil {
		return nil, err
	}
	live, _ = alreadySealed(live, out)
	assignRanks(live, out)
	out = append(out, live...)
	sort.Slice(out, func(a, b int) bool { return out[a].Rank < out[b].Rank })
	return out, nil
}

func readLive(dir string) ([]*Journal, error) {
	paths, err := LiveJournals(dir)
	if err != nil {
		return nil, err
	}
	var out []*Journal
	for _, p := range paths {
		j, err := OpenLive(p)
		if err != nil {
			return nil, err
		}
		out = append(out, j)
	}
	return out, nil
}

// assignRanks gives each live journal a rank: its process's RANK if that is free, else the next free number, in the
// order in which the processes started.
func assignRanks(live, taken []*Journal) {
	used := map[int32]bool{}
	for _, j := range taken {
		used[j.Rank] = true
	}
	sort.SliceStable(live, func(a, b int) bool { return live[a].Header.StartNS < live[b].Header.StartNS })
	named := map[*Journal]bool{}
	for _, j := range live {
		if p := j.Process; p != nil && p.Rank != nil && *p.Rank >= 0 && !used[*p.Rank] {
			j.Rank, used[*p.Rank], named[j] = *p.Rank, true, true
		}
	}
	next := int32(0)
	for _, j := range live {
		if named[j] {
			continue
		}
		for used[next] {
			next++
		}
		j.Rank, used[next] = next, true
	}
}

// alreadySealed separates the live journals that are still to be sealed from live journals that have a sealed file. The
// second kind exists if dpsight was killed after it had sealed a journal and before it removed its two files. The
// journal's header identifies the process, since process ids are not unique over exec and machines.
func alreadySealed(live, sealed []*Journal) (open, done []*Journal) {
	headers := map[MarksHeader]bool{}
	for _, j := range sealed {
		headers[j.Header] = true
	}
	for _, j := range live {
		if headers[j.Header] {
			done = append(done, j)
		} else {
			open = append(open, j)
		}
	}
	return open, done
}

// Seal packs every live journal of a spool folder and removes its two files. The processes must have ended. Seal can
// be interrupted and called again: it removes a journal only after the sealed file is on disk, and never seals a
// journal twice.
func Seal(dir string) (sealed int, err error) {
	live, err := readLive(dir)
	if err != nil || len(live) == 0 {
		return 0, err
	}
	paths, err := SealedJournals(dir)
	if err != nil {
		return 0, err
	}
	var taken []*Journal
	for _, p := range paths {
		j, err := OpenSealed(p)
		if err != nil {
			return 0, err
		}
		taken = append(taken, j)
	}
	live, done := alreadySealed(live, taken)
	for _, j := range done {
		if err := removeLive(j); err != nil {
			return 0, err
		}
	}
	assignRanks(live, taken)
	for _, j := range live {
		if err := seal(dir, j); err != nil {
			return sealed, err
		}
		sealed++
	}
	return sealed, nil
}

func seal(dir string, j *Journal) error {
	marks, err := schemas.ReadRegular(j.Path)
	if err != nil {
		return err
	}
	frames, err := schemas.ReadRegular(framesOf(j.Path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = schemas.WriteFile(filepath.Join(dir, SealedName(j.Rank)), func(w io.Writer) error {
		return Pack(w, marks, frames)
	})
	if err != nil {
		return err
	}
	return removeLive(j)
}

// removeLive removes a sealed journal's two files. The marks file goes last, since dpsight finds a journal by its
// marks file.
func removeLive(j *Journal) error {
	return errors.Join(ignoreAbsent(os.Remove(framesOf(j.Path))), os.Remove(j.Path))
}

func framesOf(marksPath string) string {
	return strings.TrimSuffix(marksPath, marksSuffix) + framesSuffix
}

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Request asks the process behind a live journal for a drain at its next mark.
func Request(marksPath string, what uint32) error {
	f, err := os.OpenFile(marksPath, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt(binary.LittleEndian.AppendUint32(nil, what), requestOffset)
	return err
}

// Requested returns the request word of a live journal: 0, [RequestDrain] while the agent has not seen the request, or
// [Answering].
func Requested(marksPath string) (uint32, error) {
	f, err := schemas.OpenRegular(marksPath)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var b [4]byte
	if _, err := f.ReadAt(b[:], requestOffset); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b[:]), nil
}
