package schemas

// The bits of NVML's throttle reasons that mean that a device runs slower than its clocks were set to. All other bits
// say that the device is idle, or that someone has set its clocks.
const (
	ThrottlePowerCap        int64 = 0x04 // the power limit
	ThrottleHardware        int64 = 0x08 // any reason of the hardware's own
	ThrottleThermal         int64 = 0x20 // temperature, by the driver
	ThrottleHardwareThermal int64 = 0x40 // temperature, by the hardware
	ThrottlePowerBrake      int64 = 0x80 // an external power brake

	Throttled = ThrottlePowerCap | ThrottleHardware | ThrottleThermal | ThrottleHardwareThermal | ThrottlePowerBrake
)

// ThrottleNames returns the names of those bits in mask that mean a slowed clock.
func ThrottleNames(mask int64) []string {
	names := []string{}
	for _, t := range []struct {
		bit  int64
		name string
	}{
		{ThrottlePowerCap, "power cap"}, {ThrottleHardware, "hardware slowdown"}, {ThrottleThermal, "thermal slowdown"},
		{ThrottleHardwareThermal, "hardware thermal slowdown"}, {ThrottlePowerBrake, "hardware power brake"},
	} {
		if mask&t.bit != 0 {
			names = append(names, t.name)
		}
	}
	return names
}
