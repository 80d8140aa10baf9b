//go:build linux && cgo

package nvml

import (
	"errors"
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// notAvailable is NVML's VALUE_NOT_AVAILABLE in an unsigned 64-bit field.
const notAvailable = ^uint64(0)

// Open loads the library and finds the devices. Without a driver it returns an [UnavailableError].
func Open() (Library, error) {
	l := &library{api: nvml.New()}
	if ret := l.api.Init(); ret != nvml.SUCCESS {
		switch {
		case errors.Is(ret, nvml.ERROR_LIBRARY_NOT_FOUND):
			return nil, &UnavailableError{"no NVIDIA driver is installed (libnvidia-ml.so.1 was not found)"}
		case errors.Is(ret, nvml.ERROR_DRIVER_NOT_LOADED):
			return nil, &UnavailableError{"the NVIDIA driver is not loaded"}
		}
		return nil, &UnavailableError{ret.Error()}
	}
	if err := l.load(); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

type library struct {
	api     nvml.Interface
	driver  string
	devices []Device
}

func (l *library) load() error {
	if v, ret := l.api.SystemGetDriverVersion(); ret == nvml.SUCCESS {
		l.driver = v
	}
	// go-nvml binds symbols lazily, and calling one that the driver lacks crashes the process. So symbols that older
	// drivers may lack are looked up first.
	has := func(symbol string) bool { return l.api.Extensions().LookupSymbol(symbol) == nil }
	optional := optional{
		memory2:  has("nvmlDeviceGetMemoryInfo_v2"),
		events:   has("nvmlDeviceGetCurrentClocksEventReasons"),
		throttle: has("nvmlDeviceGetCurrentClocksThrottleReasons"),
		energy:   has("nvmlDeviceGetTotalEnergyConsumption"),
	}
	n, ret := l.api.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return &UnavailableError{fmt.Sprintf("devices cannot be counted: %s", ret.Error())}
	}
	for i := range n {
		h, ret := l.api.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			return &UnavailableError{fmt.Sprintf("device %d: %s", i, ret.Error())}
		}
		d := &device{handle: h, optional: optional, info: Info{Index: i}}
		if d.info.Name, ret = h.GetName(); ret != nvml.SUCCESS {
			return &UnavailableError{fmt.Sprintf("device %d has no name: %s", i, ret.Error())}
		}
		if d.info.UUID, ret = h.GetUUID(); ret != nvml.SUCCESS {
			return &UnavailableError{fmt.Sprintf("device %d has no UUID: %s", i, ret.Error())}
		}
		if m, ret := h.GetMemoryInfo(); ret == nvml.SUCCESS {
			d.info.TotalBytes = int64(m.Total)
		}
		l.devices = append(l.devices, d)
	}
	return nil
}

func (l *library) Devices() []Device { return l.devices }
func (l *library) Driver() string    { return l.driver }
func (l *library) Close()            { l.api.Shutdown() }

// optional records which of NVML's newer symbols this driver has.
type optional struct{ memory2, events, throttle, energy bool }

type device struct {
	handle   nvml.Device
	optional optional
	info     Info
}

func (d *device) Info() Info { return d.info }

func (d *device) Memory() (Memory, error) {
	if d.optional.memory2 {
		if m, ret := d.handle.GetMemoryInfo_v2(); ret == nvml.SUCCESS {
			return Memory{Used: int64(m.Used), Free: int64(m.Free), Reserved: int64(m.Reserved), API: 2}, nil
		}
	}
	m, ret := d.handle.GetMemoryInfo()
	if ret != nvml.SUCCESS {
		return Memory{}, fmt.Errorf("memory of device %d: %w", d.info.Index, ret)
	}
	return Memory{Used: int64(m.Used), Free: int64(m.Free), API: 1}, nil
}

func (d *device) Processes() ([]Process, error) {
	list, ret := d.handle.GetComputeRunningProcesses()
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("processes of device %d: %w", d.info.Index, ret)
	}
	out := make([]Process, len(list))
	for i, p := range list {
		out[i].PID = int(p.Pid)
		if p.UsedGpuMemory != notAvailable {
			bytes := int64(p.UsedGpuMemory)
			out[i].Bytes = &bytes
		}
	}
	return out, nil
}

func (d *device) Gauges() Gauges {
	var g Gauges
	if u, ret := d.handle.GetUtilizationRates(); ret == nvml.SUCCESS {
		g.SMPercent, g.MemoryPercent = ptr(int32(u.Gpu)), ptr(int32(u.Memory))
	}
	if v, ret := d.handle.GetPowerUsage(); ret == nvml.SUCCESS {
		g.PowerMW = ptr(int64(v))
	}
	if v, ret := d.handle.GetTemperature(nvml.TEMPERATURE_GPU); ret == nvml.SUCCESS {
		g.TemperatureC = ptr(int32(v))
	}
	if v, ret := d.handle.GetClockInfo(nvml.CLOCK_SM); ret == nvml.SUCCESS {
		g.SMClockMHz = ptr(int32(v))
	}
	if v, ret := d.handle.GetClockInfo(nvml.CLOCK_MEM); ret == nvml.SUCCESS {
		g.MemoryClockMHz = ptr(int32(v))
	}
	// The same mask has a newer and an older name.
	switch {
	case d.optional.events:
		if v, ret := d.handle.GetCurrentClocksEventReasons(); ret == nvml.SUCCESS {
			g.ThrottleReasons = ptr(int64(v))
		}
	case d.optional.throttle:
		if v, ret := d.handle.GetCurrentClocksThrottleReasons(); ret == nvml.SUCCESS {
			g.ThrottleReasons = ptr(int64(v))
		}
	}
	return g
}

func (d *device) EnergyMJ() (int64, bool) {
	if !d.optional.energy {
		return 0, false
	}
	v, ret := d.handle.GetTotalEnergyConsumption()
	return int64(v), ret == nvml.SUCCESS
}

func ptr[T any](v T) *T { return &v }
