package ingest

import (
	"fmt"

	"github.com/dpsight/dpsight/ingest/replay"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// replayed replays a device's events and checks the result against torch's counters and the allocator's own list.
func (rec *recording) replayed() (*replay.Result, schemas.DeviceVerdict, error) {
	v := schemas.DeviceVerdict{Device: rec.device, Events: int64(rec.events.Len()), Verdict: schemas.Unverifiable}
	rec.torchPeaks(&v)
	if rec.events.Len() == 0 && !rec.listOnly {
		v.Reason = errNoEvents.Error()
		return nil, v, nil
	}
	var at []int64
	for i := range rec.checkpoints {
		if rec.checkpoints[i].Recorded {
			at = append(at, rec.checkpoints[i].Seq)
		}
	}
	rec.countOdd()
	res, err := replay.Run(&rec.events, rec.settings, rec.gaps, rec.final, at...)
	if err != nil {
		return nil, v, err
	}
	v.PeakSeq, v.PeakAllocatedBytes, v.PeakReservedBytes = res.PeakSeq, res.PeakAllocated, res.PeakReserved
	disagree, checked := 0, 0
	for i := range rec.checkpoints {
		if !rec.checkpoints[i].Recorded {
			continue
		}
		c := &rec.checkpoints[i]
		d, err := res.Check(c, rec.peaksSince[i], rec.unseen[i])
		if err != nil {
			return nil, v, err
		}
		checked++
		if rec.peaksSince[i] == 0 && rec.baseline["allocated_bytes.all.peak"] > d.AllocatedPeak+c.AllocatedPeakBytes {
			// torch's peak lies before recording began, so the replay does not cover it.
			d.AllocatedPeak = 0
			c.Agrees = d == replay.Residue{}
		}
		lost := c.MissingAllocs != 0 || c.MissingFreeRequests != 0 || c.MissingFreeCompletes != 0 ||
			c.MissingRequestedBytes != 0
		c.Agrees = c.Agrees && !lost
		if !c.Agrees {
			disagree++
		}
		v.ResidueBytes = max(v.ResidueBytes, abs(d.Allocated))
		v.MissingEvents = max(v.MissingEvents, abs(c.MissingAllocs)+abs(c.MissingFreeRequests)+
			abs(c.MissingFreeCompletes))
	}
	if res.Final != nil {
		v.DifferingBlocks = res.Final.Differing
	}
	v.Verdict, v.Reason = rec.judge(res, v, checked, disagree)
	if v.Verdict == schemas.Bounded {
		v.PeakLowBytes, v.PeakHighBytes = &res.PeakAllocated, &res.PeakHigh
	}
	return res, v, nil
}

func (rec *recording) judge(res *replay.Result, v schemas.DeviceVerdict, checked, disagree int) (verdict,
	reason string) {
	switch {
	case rec.broken != nil:
		return schemas.Lossy, rec.broken.Error()
	case v.MissingEvents > 0:
		return schemas.Lossy, units.Plural(int(v.MissingEvents), "allocator event is", "allocator events are") +
			" missing: torch counted more than were recorded"
	case v.DifferingBlocks > 0:
		return schemas.Lossy, fmt.Sprintf("%s from the allocator's own list (%s)",
			units.Plural(int(v.DifferingBlocks), "block differs", "blocks differ"), res.Final.Differences[0])
	case disagree > 0:
		return schemas.Lossy, fmt.Sprintf("replay and torch's counters differ at %d of %d drains", disagree, checked)
	case res.Final != nil && !res.Final.Exact():
		return schemas.Lossy, "replayed totals differ from those of the allocator's own list"
	case res.Anomalies.Lost() > 0:
		return schemas.Lossy, res.Anomalies.Reason()
	case rec.unread > 0:
		return schemas.Lossy, units.Plural(int(rec.unread), "item", "items") + " among the events could not be read"
	case rec.disputed > 0:
		return schemas.Lossy, "in the allocator's own list, blocks contradict the totals of " +
			units.Plural(int(rec.disputed), "segment", "segments")
	case rec.misplaced > 0:
		return schemas.Lossy, "the allocator's own list has " + units.Plural(int(rec.misplaced), "segment", "segments") +
			" of a device that the file has no trace of"
	case rec.listOnly:
		return schemas.Unverifiable, "there is no history: what was allocated when the file was written is known, and " +
			"not the peak"
	case rec.unknown > 0:
		return schemas.Lossy, fmt.Sprintf("this dpsight does not know the actions of %d of %d events", rec.unknown,
			rec.events.Len())
	case checked == 0 && (res.Final == nil || res.Final.Blocks == 0):
		return schemas.Unverifiable, "the recording holds no counters and no list of torch's to check against"
	case checked == 0 && rec.backwards > 0:
		return schemas.Unverifiable, fmt.Sprintf("times run backwards at %s, so their order is in doubt",
			units.Plural(int(rec.backwards), "event", "events"))
	case res.Anomalies.LateSlack > 0 && res.Rewound:
		return schemas.Bounded, res.Anomalies.Reason()
	case res.Anomalies.LateSlack > 0, checked == 0 && (res.Anomalies.Inexact() || res.Anomalies.Late() && !res.Rewound):
		return schemas.Unverifiable, res.Anomalies.Reason()
	case rec.unverified > 0:
		return schemas.Exact, "up to the last drain with counters; " +
			units.Plural(int(rec.unverified), "event after it is", "events after it are") + " unchecked"
	case res.Anomalies.Late():
		return schemas.Exact, res.Anomalies.Reason()
	}
	return schemas.Exact, ""
}

// countOdd counts events that torch would not have written, or that this version cannot read.
func (rec *recording) countOdd() {
	last := int64(0)
	for i, a := range rec.events.Action {
		switch t := rec.events.TimeNS[i]; {
		case a == schemas.ActionUnknown:
			rec.unknown++
		case a == schemas.ActionGap: // the time of a gap is the collector's
		case t > 0 && t < last:
			rec.backwards++
			last = t
		default:
			last = t
		}
	}
}

// torchPeaks sets the highest values that torch's peak counters had at any drain. If a script resets the counters, no
// peak is lost, since the agent drains before the reset.
func (rec *recording) torchPeaks(v *schemas.DeviceVerdict) {
	if len(rec.checkpoints) == 0 {
		return
	}
	var allocated, reserved int64
	for i := range rec.checkpoints {
		allocated = max(allocated, rec.checkpoints[i].AllocatedPeakBytes)
		reserved = max(reserved, rec.checkpoints[i].ReservedPeakBytes)
	}
	v.TorchPeakAllocatedBytes, v.TorchPeakReservedBytes = &allocated, &reserved
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}
