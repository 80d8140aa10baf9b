package collect

import (
	"strings"
	"testing"
)

func TestDeviceMemory(t *testing.T) {
	for text, want := range map[string]struct {
		bytes int64
		note  string
	}{
		"24GiB": {24 << 30, ""}, "24 gib": {24 << 30, ""}, "1048576": {1 << 20, ""}, "1048576B": {1 << 20, ""},
		"24GB":   {24 << 30, "dpsight reads 24GB as 24GiB, as vendors mean it"},
		"0.5 tb": {512 << 30, "dpsight reads 0.5 tb as 0.5 TiB, as vendors mean it"},
		"24G":    {24 << 30, "dpsight reads 24G as 24GiB, as vendors mean it"},
		"512 m":  {512 << 20, "dpsight reads 512 m as 512 MiB, as vendors mean it"},
		"512MB":  {512 << 20, "dpsight reads 512MB as 512MiB, as vendors mean it"},
	} {
		var m DeviceMemory
		if err := m.UnmarshalText([]byte(text)); err != nil || m.Bytes != want.bytes || m.note != want.note {
			t.Errorf("%s: %+v, %v; want %+v", text, m, err, want)
		}
	}
	for _, text := range []string{"", "GB", "B", "G", "24GBB", "24BG", "much", "0", "24", "-1GiB", "3TiB"} {
		if err := new(DeviceMemory).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

func TestPhantomThatIsChosenHasTheMemoryGiven(t *testing.T) {
	if hasGPUFile() {
		t.Skip("there is a GPU: auto chooses it")
	}
	m, err := OpenMachineWith(DeviceAuto, 24<<30)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if m.memory != 24<<30 || !strings.Contains(m.Note, " with 24.00 GiB (") {
		t.Errorf("%d bytes: %s", m.memory, m.Note)
	}
}
