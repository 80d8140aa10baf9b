package pickle

import "fmt"

const valueBytes = 16

// maxSlot is the highest number of a memo slot, since [Value].slot holds a slot's number plus one.
const maxSlot = 1<<32 - 2

func (d *Decoder) push(v Value) error {
	if len(d.stack) == cap(d.stack) {
		if err := d.growStack(); err != nil {
			return err
		}
	}
	d.stack = append(d.stack, v)
	return nil
}

func (d *Decoder) growStack() error {
	n := max(256, 2*cap(d.stack))
	if err := d.Charge(int64(n-cap(d.stack)) * valueBytes); err != nil {
		return err
	}
	d.stack = append(make([]Value, 0, n), d.stack...)
	return nil
}

func (d *Decoder) growMarks() error {
	n := max(64, 2*cap(d.marks))
	if err := d.Charge(int64(n-cap(d.marks)) * 4); err != nil {
		return err
	}
	d.marks = append(make([]uint32, 0, n), d.marks...)
	return nil
}

// fence returns the height of the stack at the last mark.
func (d *Decoder) fence() int {
	if m := len(d.marks); m > 0 {
		return int(d.marks[m-1])
	}
	return 0
}

// need checks that n values lie above the last mark.
func (d *Decoder) need(n int) error {
	if len(d.stack)-d.fence() < n {
		return d.bad("stack underflow")
	}
	return nil
}

// popMark removes the last mark and returns the values above it. The values stay readable until the next push.
func (d *Decoder) popMark() ([]Value, error) {
	m := len(d.marks)
	if m == 0 {
		return nil, d.bad("no mark on the stack")
	}
	from := d.marks[m-1]
	items := d.stack[from:]
	d.marks, d.stack = d.marks[:m-1], d.stack[:from]
	return items, nil
}

func (d *Decoder) pop(n int) ([]Value, error) {
	if err := d.need(n); err != nil {
		return nil, err
	}
	from := len(d.stack) - n
	items := d.stack[from:]
	d.stack = d.stack[:from]
	return items, nil
}

func (d *Decoder) get(slot uint64) error {
	if slot >= uint64(len(d.memo)) || d.memo[slot].kind == 0 {
		return d.bad("memo slot %d is empty", slot)
	}
	v := d.memo[slot]
	if v.slot != 0 && v.flags&fetched == 0 {
		d.memo[slot].flags |= fetched
	}
	return d.push(v)
}

// put stores the top of the stack in a memo slot. Picklers number slots in the order of writing, so a slot is written
// once and its number is below the number of bytes read. So the memo is not larger than the input.
func (d *Decoder) put(slot uint64) error {
	if err := d.need(1); err != nil {
		return err
	}
	if slot >= uint64(len(d.memo)) {
		if slot > uint64(d.at) || slot > maxSlot {
			return d.bad("memo slot %d is beyond all values so far", slot)
		}
		if err := d.growMemo(int(slot) + 1); err != nil {
			return err
		}
	}
	if d.memo[slot].kind != 0 {
		return d.bad("memo slot %d is written twice", slot)
	}
	v := &d.stack[len(d.stack)-1]
	if v.kind == List || v.kind == Dict {
		if v.slot != 0 {
			return d.bad("a %v goes into two memo slots", v.kind)
		}
		v.slot = uint32(slot) + 1
	}
	d.memo[slot] = *v
	return nil
}

func (d *Decoder) growMemo(n int) error {
	if n > cap(d.memo) {
		c := max(256, cap(d.memo)+d.Ahead(cap(d.memo), 0), n)
		if err := d.Charge(int64(c-cap(d.memo)) * valueBytes); err != nil {
			return err
		}
		d.memo = append(make([]Value, 0, c), d.memo...)
	}
	d.memo = d.memo[:n]
	return nil
}

// build executes the opcodes that make or fill a container.
func (d *Decoder) build(op byte) error {
	var items []Value
	var err error
	switch op {
	case opSetItems, opAppends, opDict, opList, opTuple:
		items, err = d.popMark()
	case opAppend, opTuple1:
		items, err = d.pop(1)
	case opSetItem, opTuple2:
		items, err = d.pop(2)
	case opTuple3:
		items, err = d.pop(3)
	}
	if err != nil {
		return err
	}
	switch op {
	case opDict, opSetItems, opSetItem:
		if len(items)%2 != 0 {
			return d.bad("a dictionary with a key that has no value")
		}
	}
	if d.elements += int64(len(items)); d.elements > d.limits.Elements {
		return d.exceeded("elements", d.limits.Elements)
	}
	switch op {
	case opTuple, opTuple1, opTuple2, opTuple3:
		return d.complete(Tuple, items)
	case opList:
		return d.complete(List, items)
	case opDict:
		return d.complete(Dict, items)
	case opAppends, opAppend:
		return d.extend(List, items)
	}
	return d.extend(Dict, items)
}

// complete makes a container of items and pushes it; a list or dictionary may still be appended to.
func (d *Decoder) complete(kind Kind, items []Value) error {
	v := Value{kind: kind, depth: 1}
	if err := d.fill(&v, items); err != nil {
		return err
	}
	return d.push(v)
}

// extend adds items to the container on top of the stack.
func (d *Decoder) extend(kind Kind, items []Value) error {
	if err := d.need(1); err != nil {
		return err
	}
	v := &d.stack[len(d.stack)-1]
	if v.kind != kind {
		return d.bad("items for a %v, but a %v is on the stack", kind, v.kind)
	}
	if v.slot != 0 && d.memo[v.slot-1].flags&fetched != 0 {
		return d.bad("a %v that contains itself, or grows after it was shared", kind)
	}
	if err := d.fill(v, items); err != nil {
		return err
	}
	if v.slot != 0 {
		d.memo[v.slot-1] = *v
	}
	return nil
}

func (d *Decoder) fill(v *Value, items []Value) error {
	if len(items) == 0 {
		return nil
	}
	for i := range items {
		if items[i].depth >= v.depth {
			v.depth = items[i].depth + 1
		}
	}
	if int(v.depth) > d.limits.Depth {
		return d.exceeded("nesting", int64(d.limits.Depth))
	}
	var ref Ref
	var err error
	switch v.kind {
	case List:
		ref, err = d.b.List(v.Ref(), items)
	case Dict:
		ref, err = d.b.Dict(v.Ref(), items)
	default:
		ref, err = d.b.Tuple(items)
	}
	if err != nil {
		return fmt.Errorf("at byte %d: %w", d.at, err)
	}
	if ref.Tag == 0 {
		return fmt.Errorf("at byte %d: the builder returned the zero Ref", d.at)
	}
	v.tag, v.n = ref.Tag, ref.ID
	return nil
}
