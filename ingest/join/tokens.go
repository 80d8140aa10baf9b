package join

import "github.com/dpsight/dpsight/schemas"

// token is what one program event does.
type token uint32

// tokens is what a step does, unit by unit.
type tokens struct {
	of    []token // by place in the step, from 1
	size  []int64
	units []unit
}

type unit struct {
	stretch // in places of the step: (from, to]
	hash    uint64
}

// tokensOf is what a step does; nil where something in it is not known.
func (f *finder) tokensOf(i int) *tokens {
	s := &f.parts
	if t, ok := s.tokens[i]; ok {
		return t
	}
	if s.tokens == nil {
		s.tokens = map[int]*tokens{}
	}
	t := f.readTokens(i)
	s.tokens[i] = t
	return t
}

// Where the block of an event ends, or began.
const (
	samePhase token = iota
	sameUnit
	sameStep
	outside
)

// crosses reports whether an event is about a block that is not born and dead in its unit.
func (t token) crosses() bool { return t>>4&15 >= sameStep }

func (f *finder) readTokens(i int) *tokens {
	j, p, at := f.j, f.p, f.at[i]
	n := int32(at.len())
	t, buffer := &tokens{}, &f.parts.buffer
	if spare := len(f.parts.spare); spare > 0 {
		t, f.parts.spare = f.parts.spare[spare-1], f.parts.spare[:spare-1]
	}
	t.of, t.size, t.units = grown(t.of, int(n)+1), grown(t.size, int(n)+1), t.units[:0]
	buffer.phase, buffer.run, buffer.microbatch = grown(buffer.phase, int(n)+1), grown(buffer.run, int(n)+1),
		grown(buffer.microbatch, int(n)+1)
	phase, run, in := buffer.phase, buffer.run, buffer.microbatch
	runs := int32(0)
	spans := j.ctx.rank.Steps.Spans
	first := j.ctx.span[j.ctx.rank.Steps.Steps[i].BeginK]
	for s := int(first); s < len(spans) && spans[s].Step == spans[first].Step; s++ {
		from, to := p.number[j.seqAt(spans[s].BeginK)]-at.from, p.number[j.seqAt(spans[s].EndK)]-at.from
		fam := folded(families[spans[s].Under])
		for e := max(from, 0) + 1; e <= min(to, n); e++ {
			if e == 1 || phase[e-1] != fam {
				runs++
			}
			phase[e], run[e], in[e] = fam, runs, spans[s].Microbatch
		}
	}
	for e := int32(1); e <= n; e++ {
		if e == 1 || in[e] != in[e-1] {
			t.units = append(t.units, unit{stretch: stretch{e - 1, e - 1}})
		}
		t.units[len(t.units)-1].to = e
		t.size[e] = j.dev.Events.Size[p.seq[at.from+e]-1]
		switch j.dev.Events.Action[p.seq[at.from+e]-1] {
		case schemas.ActionGap:
			return nil
		case schemas.ActionFreeRequested:
			t.of[e] = 1<<8 | outside<<4 | token(phase[e])
		default:
			t.of[e] = 2<<8 | outside<<4 | token(phase[e])
		}
	}
	lives := j.dev.Replay.Allocs
	for l := j.born(p, at.from); l < len(lives) && p.number[lives[l].AllocSeq] <= at.to; l++ {
		b, d := p.number[lives[l].AllocSeq]-at.from, p.death(lives[l].FreeRequestedSeq, at.to)-at.from
		if d > n {
			continue
		}
		where := sameStep
		if run[b] == run[d] {
			where = samePhase
		} else if in[b] == in[d] {
			where = sameUnit
		}
		t.of[b] = t.of[b]&^(15<<4) | where<<4
		t.of[d] = t.of[d]&^(15<<4) | where<<4
	}
	for u := range t.units {
		h := uint64(14695981039346656037)
		for _, x := range t.of[t.units[u].from+1 : t.units[u].to+1] {
			h = (h ^ uint64(x)) * 1099511628211
		}
		t.units[u].hash = h
	}
	return t
}
