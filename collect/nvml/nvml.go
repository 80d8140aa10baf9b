// Package nvml reads devices through the NVIDIA management library. The package never creates a CUDA context, so it
// takes no device memory. Package nvml never asks for PCIe throughput, since that call blocks for 20 ms.
//
// The package has its own small interface instead of go-nvml's some 300 methods. So a fake takes a few lines, and a
// build without cgo, which go-nvml needs, differs only in [Open].
package nvml

import "fmt"

// A Library is an open NVML.
type Library interface {
	// Devices lists all devices in the order of their NVML index.
	Devices() []Device
	// Driver is the version of the driver, empty if it is not known.
	Driver() string
	Close()
}

// A Device is one GPU. Only one goroutine at a time calls a Device's methods.
type Device interface {
	Info() Info
	// Memory costs some 4 µs.
	Memory() (Memory, error)
	// Processes lists the processes with a compute context.
	Processes() ([]Process, error)
	// Gauges reads everything else that is cheap.
	Gauges() Gauges
	// EnergyMJ is the energy used since the driver was loaded, in millijoule. A call takes milliseconds.
	EnergyMJ() (int64, bool)
}

// Info is what does not change while a device is in the machine.
type Info struct {
	Index      int
	Name       string
	UUID       string
	TotalBytes int64
}

// Memory is a reading of a device's memory, in bytes.
type Memory struct {
	Used int64
	Free int64
	// Reserved is the driver's own reserve. With API version 1 it is 0 and Used includes it.
	Reserved int64
	API      int32 // 1 or 2
}

// Process is a process that has a compute context on the device.
type Process struct {
	PID int
	// Bytes is nil if the driver does not say (under some virtualisation it cannot).
	Bytes *int64
}

// Gauges are readings in NVML's own integers; nil if the device or its driver does not answer.
type Gauges struct {
	SMPercent       *int32
	MemoryPercent   *int32
	PowerMW         *int64
	TemperatureC    *int32
	SMClockMHz      *int32
	MemoryClockMHz  *int32
	ThrottleReasons *int64
}

// An UnavailableError says why NVML cannot be used.
type UnavailableError struct{ Reason string }

func (e *UnavailableError) Error() string { return fmt.Sprintf("NVML is not available: %s", e.Reason) }
