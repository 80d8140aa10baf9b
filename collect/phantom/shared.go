package phantom

import (
	"encoding/binary"
	"errors"
	"os"
)

// SharedPage is the environment variable with the index, from 0 (the default), of a process's page in [Library.Shared].
// Processes with different pages have different devices.
const SharedPage = "PHANTOM_SHARED_PAGE"

const sharedBytes = 1 << 19 // size of a page, as in csrc/shared.c

// Use says how much of a device the processes of a run held.
type Use struct {
	Page, Device  int
	Processes     int   // the most processes that held memory of the device at the same time
	ReservedBytes int64 // the most that cudaMalloc had given to all processes together at one time
	TakenBytes    int64 // the same, including the contexts of all processes except the first
}

// Shared has the pages in which the processes of a run count the memory that they hold on each device.
type Shared struct {
	file  *os.File
	pages int
}

// NewShared creates a file with the given number of pages. The file stays readable until Close, even if it is removed.
func NewShared(path string, pages int) (*Shared, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := file.Truncate(int64(pages) * sharedBytes); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &Shared{file, pages}, nil
}

// Close closes the file.
func (s *Shared) Close() error { return s.file.Close() }

// Uses returns, by page, the devices on which any process held memory.
func (s *Shared) Uses() ([]Use, error) {
	var uses []Use
	for page := range s.pages {
		var head [MostDevices][3]uint64
		if _, err := s.file.Seek(int64(page)*sharedBytes, 0); err != nil {
			return nil, err
		}
		if err := binary.Read(s.file, binary.NativeEndian, &head); err != nil {
			return nil, err
		}
		for device, most := range head {
			if most[0] > 0 {
				uses = append(uses, Use{page, device, int(most[0]), int64(most[1]), int64(most[2])})
			}
		}
	}
	return uses, nil
}
