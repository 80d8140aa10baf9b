package replay

import (
	"fmt"
	"math/bits"
)

const (
	minBlock  = 512     // the size of every block is a multiple of minBlock
	smallSize = 1 << 20 // the largest rounded request that the small pool serves
)

// Settings are the allocator's settings that decide the size of a block. The zero value is torch's default.
//
// Sizes of segments are settings too (large_segment_size_mb), but the trace shows them.
type Settings struct {
	// RoundupPower2Divisions is, for each i, the number of divisions between powers of two for requests of [2^i,
	// 2^(i+1)) MiB. The first entry also serves smaller requests, and the last entry larger ones. 0 and 1 mean rounding
	// to 512 B.
	RoundupPower2Divisions [16]int64
	// MaxSplitSize is in bytes: torch does not split a large block for a request of this size or more. 0 = no limit.
	MaxSplitSize int64
	// ExpandableSegments matters only for segments from cudaMalloc, whose blocks torch splits down to 512 B while the
	// setting is on. Blocks of expandable segments are split down to 512 B in any case.
	ExpandableSegments bool
}

// SetDivisions sets the divisions for requests from mib MiB to twice that.
func (s *Settings) SetDivisions(mib, divisions int64) error {
	if mib <= 0 || mib&(mib-1) != 0 || mib > 1<<15 {
		return fmt.Errorf("allocator setting roundup_power2_divisions: size %d is no power of two from 1 to 32768", mib)
	}
	if divisions < 0 {
		return fmt.Errorf("allocator setting roundup_power2_divisions: size %d: %d divisions", mib, divisions)
	}
	s.RoundupPower2Divisions[bits.TrailingZeros64(uint64(mib))] = divisions
	return nil
}

// round returns the size of the block that a request of n bytes needs.
func (s *Settings) round(n int64) int64 {
	if n < minBlock {
		return minBlock
	}
	i := min(max(bits.Len64(uint64(n))-21, 0), len(s.RoundupPower2Divisions)-1)
	if d := s.RoundupPower2Divisions[i]; d > 1 && n/minBlock >= d && n > minBlock*d {
		return roundPower2(n, d)
	}
	return (n + minBlock - 1) / minBlock * minBlock
}

// roundPower2 rounds n up to a division of the space between the powers of two around it.
func roundPower2(n, divisions int64) int64 {
	if n&(n-1) == 0 {
		return n
	}
	floor := int64(1) << (bits.Len64(uint64(n)) - 1)
	division := floor >> (bits.Len64(uint64(divisions)) - 1) // divisions < n/512, so this is at least 512
	return (n + division - 1) &^ (division - 1)
}
