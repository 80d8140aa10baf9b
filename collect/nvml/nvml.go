// Package nvml reads devices through the NVIDIA management library. The package never creates a CUDA context, so it
// takes no device memory. The package never asks for PCIe throughput, since the call for PCIe throughput blocks for 20
// ms.
//
// The package has its own small interface instead of go-nvml's some 300 methods. With such a small interface, a fake
// for tests takes a few lines, and a build without cgo, which go-nvml needs, differs only in [Open].
package nvml

import "fmt"

// A Library is NVML after loading.
type Library interface {
	// Devices lists all devices in the order of their NVML index.
	Devices() []Device
	// Driver returns the driver's version, or "" if it is unknown.
	Driver() string
	Close()
}

// A Device is one GPU. Only one goroutine at a time calls a Device's methods.
type Device interface {
	Info() Info
	// Memory reads the device's memory. A call takes some 4 µs.
	Memory() (Memory, error)
	// Processes lists the processes with a compute context.
	Processes() ([]Process, error)
	// Gauges reads all other values that are quick to read.
	Gauges() Gauges
	// EnergyMJ returns the energy used since the driver was loaded, in millijoule. A call takes milliseconds.
	EnergyMJ() (int64, bool)
}

// Info has the facts that do not change while a device is in the machine.
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
	// Reserved is the memory that the driver reserves for itself. With API version 1 it is 0, and Used includes it.
	Reserved int64
	API      int32 // version of NVML's memory call: 1 or 2
}

// Process is a process that has a compute context on the device.
type Process struct {
	PID int
	// Bytes is nil if the driver does not tell (under some virtualisation it cannot).
	Bytes *int64
}

// Gauges are values in NVML's own integers. A value is nil if the device or its driver does not provide it.
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
