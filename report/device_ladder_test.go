package report_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/ladder"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/report/figure"
	"github.com/dpsight/dpsight/schemas"
)

const (
	outside = ladder.RungContext + "+" + ladder.RungModules + "+" + ladder.RungNonTorch
	unfreed = ladder.RungPendingFree + "+" + ladder.RungCached
)

// rung returns a rung of a ladder. in names the rung that contains it.
func rung(name, in string, bytes int64) ladder.Rung {
	r := ladder.Rung{Rung: name, Bytes: &bytes, How: ladder.HowReplayed}
	if in != "" {
		r.In = &in
	}
	return r
}

func at(peak string, rungs ...ladder.Rung) ladder.Moment {
	step, phase, reserve := int64(1), "backward", int64(615)<<20
	return ladder.Moment{At: peak, Step: &step, Phase: &phase, DriverReserveBytes: &reserve, Rungs: rungs}
}

// whole returns a moment in which all rungs are known. All values are in MiB: other processes, the driver, the context,
// torch's cached and pending memory, and what torch allocated.
func whole(peak string, others, driver, context, cached, pending, parameters, activations,
	slack float64) ladder.Moment {
	b := func(n float64) int64 { return int64(n * mib) }
	allocated := b(parameters) + b(activations) + b(slack)
	reserved := allocated + b(cached) + b(pending)
	return at(peak, rung(ladder.RungDeviceUsed, "", reserved+b(others)+b(driver)+b(context)),
		rung(ladder.RungOtherProcesses, ladder.RungDeviceUsed, b(others)),
		rung(ladder.RungDriver, ladder.RungDeviceUsed, b(driver)), rung(outside, ladder.RungDeviceUsed, b(context)),
		rung(ladder.RungReserved, ladder.RungDeviceUsed, reserved),
		rung(ladder.RungAllocated, ladder.RungReserved, allocated), rung(schemas.Parameters, ladder.RungAllocated,
			b(parameters)),
		rung(schemas.Activations, ladder.RungAllocated, b(activations)), rung(schemas.Slack, ladder.RungAllocated,
			b(slack)),
		rung(ladder.RungPendingFree, ladder.RungReserved, b(pending)), rung(ladder.RungCached, ladder.RungReserved,
			b(cached)))
}

// on returns the ladder of a GPU. The ladder has a moment for the device's peak, and one for the peak of each rank's
// allocator. Without peaks of allocators, the GPU has one rank.
func on(first int32, device ladder.Moment, peaks ...ladder.Moment) ladder.GPULadder {
	g := ladder.GPULadder{Moments: []ladder.Moment{device}}
	for i := range int32(max(1, len(peaks))) {
		g.Devices = append(g.Devices, ladder.Device{Device: fmt.Sprintf("cuda:%d", first+i), Rank: first + i})
	}
	for i, p := range peaks {
		p.Device, p.Rank = &g.Devices[i].Device, &g.Devices[i].Rank
		g.Moments = append(g.Moments, p)
	}
	return g
}

// ladders returns models with GPUs whose ladders are hard to draw.
func ladders() map[string]report.Model {
	const device, own = ladder.DevicePeak, ladder.AllocatorPeak
	unknown := whole(own, 0, 0, 0, 100, 20, 4000, 9000, 3)
	unknown.Rungs[0].Bytes, unknown.Rungs[3].Bytes = nil, nil
	unknown.Rungs[1].Bytes, unknown.Rungs[2].Bytes = nil, nil
	counted := at(device, rung(ladder.RungDeviceUsed, "", 9000*mib),
		rung(ladder.RungOtherProcesses+"+"+ladder.RungDriver, ladder.RungDeviceUsed, 400*mib),
		rung(outside, ladder.RungDeviceUsed, 600*mib), rung(ladder.RungReserved, ladder.RungDeviceUsed, 8000*mib),
		rung(ladder.RungAllocated, ladder.RungReserved, 3000*mib), rung(unfreed, ladder.RungReserved, 5000*mib))
	reserved := at(device, rung(ladder.RungDeviceUsed, "", 9000*mib), rung(ladder.RungDriver+"+"+outside,
		ladder.RungDeviceUsed, 1000*mib),
		rung(ladder.RungReserved, ladder.RungDeviceUsed, 8000*mib))
	nothing := at(device, rung(ladder.RungDeviceUsed, "", 9000*mib),
		rung(ladder.RungOtherProcesses+"+"+ladder.RungDriver+"+"+outside+"+"+ladder.RungReserved,
			ladder.RungDeviceUsed, 9000*mib))
	nothing.Step, nothing.Phase = nil, nil
	over := whole(device, 0, 0, -700, 2000, 0, 4000, 9000, 3)
	byte1 := at(device, rung(ladder.RungDeviceUsed, "", 1), rung(outside, ladder.RungDeviceUsed, 1),
		rung(ladder.RungReserved, ladder.RungDeviceUsed, 0))
	out := map[string]report.Model{}
	add := func(name string, runs []madeUp, gpus ...[]ladder.GPULadder) {
		m := report.Model{Study: study(0, runs...), Ladders: map[string]ladder.Run{}}
		for i, g := range gpus {
			m.Ladders[m.Study.Runs[i].RunID] = ladder.Run{Identity: m.Study.Runs[i].Identity, GPUs: g}
		}
		out[name] = m
	}
	one := func(device ladder.Moment, peaks ...ladder.Moment) []ladder.GPULadder {
		return []ladder.GPULadder{on(0, device, peaks...)}
	}
	usual := one(whole(device, 5000, 300, 742, 20000, 64, 4470, 22000, 2), whole(own, 5000, 300, 742, 400, 0, 4470,
		43000, 2))
	add("ladder-usual", headline(), usual, one(counted, unknown), one(over, whole(own, 0, 9, 742, 0, 0, 1, 1, 0)))
	add("ladder-one", headline()[:1], usual)
	mixed := headline()
	mixed[1].source, mixed[2].bare, mixed[2].name = schemas.Predicted, true,
		"WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW"
	mixed = append(mixed, methodRun("imported", "ghost"), methodRun("cjk", "ghost"))
	mixed[3].source, mixed[4].name = schemas.Imported, "按样本梯度裁剪 实验 (Opacus)"
	add("ladder-mixed", mixed, usual, nil, one(nothing), nil, one(reserved, unknown))
	add("ladder-ranks", headline(), []ladder.GPULadder{on(0, whole(device, 0, 9, 742, 300, 0, 4000, 9000, 0), unknown,
		whole(own, 1, 9, 742, 1, 1, 1, 1, 1)),
		on(2, counted, whole(own, 7000, 9, 742, 1, 1, 1, 1, 1)), on(3, reserved)}, usual)
	add("ladder-tiny-huge", headline(), one(byte1), one(whole(device, 1<<20, 9, 742, 1<<18, 0, 1<<19, 1<<20, 2)),
		one(whole(device, 0, 0, 0, 0, 0, 0, 0, 0), whole(own, 0, 0, 1.0/mib, 0, 0, 0, 0, 0)))
	var forty []madeUp
	var many [][]ladder.GPULadder
	for i := range 40 {
		m := headline()[i%3]
		m.id, m.name = fmt.Sprintf("forty-%02d", i), fmt.Sprintf("experiment-%02d-with-a-name-of-sixty-characters-%s",
			i, strings.Repeat("x", 14))
		forty, many = append(forty, m), append(many, one(whole(device, float64(i), 9, 742, float64(i*i), 0, 4000,
			float64(i)*1000, 0), unknown))
	}
	add("ladder-forty", forty, many...)
	return out
}

// drawnLadder returns the model's picture of ladders, or nil if it has none.
func drawnLadder(m report.Model) *figure.Figure {
	for _, f := range m.Figures() {
		if f.Name == "ladder" {
			return &f
		}
	}
	return nil
}

// A bar of a ladder ends at the memory in use on the device. The bars of both moments have the same axis.
func TestLadderBarsEndAtWhatIsUsed(t *testing.T) {
	for name, m := range ladders() {
		f := drawnLadder(m)
		if f == nil {
			t.Fatalf("%s: no picture", name)
		}
		c, err := f.Canvas()
		if err != nil {
			t.Fatal(err)
		}
		scale, bars := 0.0, 0
		shape := map[string]canvas.Shape{}
		for _, k := range c.Shapes {
			if _, twice := shape[k.What]; twice {
				t.Errorf("%s: two bars are of %s", name, k.What)
			}
			shape[k.What] = k
		}
		for i := range m.Study.Cells {
			for _, g := range m.Ladders[m.Study.Cells[i].RunID].GPUs {
				for _, at := range g.Moments {
					bars++
					used := at.Rung(ladder.RungDeviceUsed)
					if used.Bytes == nil || at.Rung(outside) != nil && *at.Rung(outside).Bytes < 0 ||
						len(g.Devices) > 1 || len(m.Ladders[m.Study.Cells[i].RunID].GPUs) > 1 {
						continue
					}
					k, ok := shape[map[string]string{ladder.DevicePeak: "device's",
						ladder.AllocatorPeak: "allocator's"}[at.At]+" peak of "+m.Study.Cells[i].Label]
					if !ok {
						t.Errorf("%s: no bar for %s of %s", name, at.At, m.Study.Cells[i].Label)
						continue
					}
					width := k.Box.X1 - k.Box.X0
					if *used.Bytes > mib && scale == 0 {
						scale = width / float64(*used.Bytes)
					}
					if want := scale * float64(*used.Bytes); scale > 0 && math.Abs(width-want) > 0.01 ||
						k.Box.X0 != k.Within.X0 {
						t.Errorf("%s: the bar for %s of %s is %.2f long, want %.2f", name, at.At,
							m.Study.Cells[i].Label, width, want)
					}
				}
			}
		}
		if len(shape) != bars || bars == 0 {
			t.Errorf("%s: %d bars of %d moments", name, len(shape), bars)
		}
	}
}

// The picture of ladders leaves out runs without samples, and a note names them. If no run has samples, there is no
// picture.
func TestLadderLeavesOutWhatWasNotSampled(t *testing.T) {
	for name, s := range gallery() {
		if drawnLadder(report.Model{Study: s}) != nil {
			t.Errorf("%s: a picture of ladders without any", name)
		}
	}
	m := ladders()["ladder-mixed"]
	notes := strings.Join(drawnLadder(m).Picture.(*figure.DeviceLadder).Notes, "\n")
	for _, want := range []string{"without NVML samples and left out: dpsgd [predicted (phantom h200, indicative)], " +
		"ghost [imported]", "the driver's reserve, 615.00 MiB"} {
		if !strings.Contains(notes, want) {
			t.Errorf("no note %q in\n%s", want, notes)
		}
	}
	unsampled := report.Model{Study: m.Study, Ladders: map[string]ladder.Run{}}
	for id, r := range m.Ladders {
		for i := range r.GPUs {
			r.GPUs[i].Moments = r.GPUs[i].Moments[1:] // keep only the moments of the allocators' peaks
		}
		unsampled.Ladders[id] = r
	}
	if drawnLadder(unsampled) != nil {
		t.Error("a picture of GPUs that were not sampled")
	}
}
