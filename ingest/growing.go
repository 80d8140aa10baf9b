package ingest

import (
	"fmt"

	"github.com/dpsight/dpsight/ingest/replay"
	"github.com/dpsight/dpsight/ingest/torchsnap"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// A Growing replays the drains of a journal one after another, while the agent still writes the journal. A Growing
// returns the bytes allocated and reserved after each event, as [Run] does later, but no categories.
type Growing struct {
	stacks  *torchsnap.Stacks
	devices map[int32]*growing
}

// growing is the replay of one device. The values of growing are relative to the recording's beginning, when other
// bytes may have been in use.
type growing struct {
	replay              *replay.Replay
	allocated, reserved int64 // bytes when recording began
	broken              bool
}

// A Level has the bytes allocated and reserved on a device just after an event.
type Level struct {
	Device              int32
	Seq                 int64
	TimeNS              int64
	Allocated, Reserved int64
}

// NewGrowing returns a replay that has no events yet.
func NewGrowing() *Growing {
	return &Growing{stacks: torchsnap.NewStacks(), devices: map[int32]*growing{}}
}

// Begin sets the counters at the moment at which recording began, which the first checkpoint has.
func (g *Growing) Begin(c *spool.Checkpoint) {
	for i := range c.Devices {
		d := &c.Devices[i]
		g.devices[d.Device] = &growing{allocated: d.Stats["allocated_bytes.all.current"],
			reserved: d.Stats["reserved_bytes.all.current"]}
	}
}

// Add replays a drain and calls each with the level after each event. If a device's events can no longer be replayed,
// Add passes on no levels for that device.
func (g *Growing) Add(c *spool.Chunk, each func(Level)) error {
	if c.Checkpoint == nil || c.Pickle == nil {
		return nil
	}
	s, err := torchsnap.ReadBytes(c.Pickle, torchsnap.Options{Stacks: g.stacks})
	if err == nil {
		err = s.Strict()
	}
	if err != nil {
		for _, d := range g.devices {
			d.broken = true
		}
		return fmt.Errorf("the allocator's events at byte %d of the journal: %w", c.Offset, err)
	}
	if listsBlocks(c.Checkpoint.Reason) {
		return g.resume(s, c, each)
	}
	settings, err := replaySettings(s.Settings)
	if err != nil {
		return err
	}
	for i := range s.Devices {
		events := &s.Devices[i]
		if events.Len() == 0 {
			continue
		}
		d, err := g.device(int32(i), settings)
		if err != nil {
			return err
		}
		for k := 0; k < events.Len() && !d.broken; k++ {
			one := events.Part(k, k+1)
			if err := d.replay.Apply(&one); err != nil {
				d.broken = true
				return err
			}
			each(d.level(int32(i), events.TimeNS[k]))
		}
	}
	return nil
}

// resume continues the replay from the allocator's own list of blocks, after a time in which no events were recorded.
func (g *Growing) resume(s *torchsnap.Snapshot, c *spool.Chunk, each func(Level)) error {
	settings, err := replaySettings(s.Settings)
	if err != nil {
		return err
	}
	for i := range c.Checkpoint.Devices {
		device := c.Checkpoint.Devices[i].Device
		d, err := g.device(device, settings)
		if err != nil {
			return err
		}
		list := blocks(s, device, d.replay.Now().Seq+1, schemas.ListWindow)
		if err := d.replay.Resume(list); err != nil {
			d.broken = true
			return err
		}
		// The list has all blocks, including blocks from before the recording.
		d.allocated, d.reserved = 0, 0
		each(d.level(device, c.Checkpoint.TimeNS))
	}
	return nil
}

func (g *Growing) device(device int32, settings replay.Settings) (*growing, error) {
	d := g.devices[device]
	if d == nil {
		d = &growing{}
		g.devices[device] = d
	}
	if d.replay == nil {
		r, err := replay.New(settings, nil)
		if err != nil {
			return nil, err
		}
		d.replay = r
	}
	return d, nil
}

func (d *growing) level(device int32, ns int64) Level {
	now := d.replay.Now()
	return Level{device, now.Seq, ns, d.allocated + now.Allocated, d.reserved + now.Reserved}
}
