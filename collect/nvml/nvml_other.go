//go:build !linux || !cgo

package nvml

// Open always returns an error: go-nvml needs Linux and cgo.
func Open() (Library, error) {
	return nil, &UnavailableError{"this dpsight was built without cgo, which NVML needs"}
}
