package schemas

// The bits of NVML's throttle reasons that mean that a device runs slower than its clocks were set to. All other bits
// say that the device is idle, or that someone has set its clocks.
const (
	ThrottlePowerCap        int64 = 0x04 // the power limit slowed the GPU down
	ThrottleHardware        int64 = 0x08 // the hardware slowed the GPU down, for any reason
	ThrottleThermal         int64 = 0x20 // the driver slowed the GPU down because of its temperature
	ThrottleHardwareThermal int64 = 0x40 // the hardware slowed the GPU down because of its temperature
	ThrottlePowerBrake      int64 = 0x80 // an external power brake slowed the GPU down

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
