package collect

import (
	"fmt"
	"strings"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// DeviceMemory is the size of a GPU's memory as a user writes it: 24GiB, or 24GB or 24G as cards are sold.
type DeviceMemory struct {
	Bytes int64  // 0 means the GPU's own memory
	note  string // how the size was interpreted, if its unit was ambiguous
}

// Tell prints how the size was interpreted, if its unit was ambiguous.
func (m DeviceMemory) Tell(c *Console) {
	if m.note != "" {
		c.Println("dpsight: note: " + m.note)
	}
}

// UnmarshalText reads the value of an option.
func (m *DeviceMemory) UnmarshalText(text []byte) error {
	given := string(text)
	size, sold := asSold(given)
	bytes, err := units.ParseBytes(size)
	hint := "as in 24GiB"
	if err == nil && (bytes < 1<<20 || bytes > MostPhantomMemory) {
		err = fmt.Errorf("size %q is out of range: give 1MiB to 2TiB", given)
		if bytes > 0 && bytes <= MostPhantomMemory>>30 && !strings.ContainsAny(given, "bB") {
			hint = fmt.Sprintf("the size has no unit: did you mean %sGiB?", given)
		}
	}
	if err != nil {
		return schemas.WithHint(err, hint)
	}
	*m = DeviceMemory{Bytes: bytes}
	if sold {
		m.note = fmt.Sprintf("dpsight reads %s as %s, as vendors mean it", given, size)
	}
	return nil
}

// asSold returns the binary size that a user means by a size as cards are sold, such as 24GB or 24G.
func asSold(size string) (meant string, sold bool) {
	number := strings.TrimRight(strings.ToUpper(size), "B")
	if number == "" || !strings.ContainsAny(number[len(number)-1:], "MGT") || len(size) > len(number)+1 {
		return size, false
	}
	return size[:len(number)-1] + number[len(number)-1:] + "iB", true
}
