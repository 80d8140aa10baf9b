package pickle

import "encoding/binary"

// runBytes is the length of the longest opcode that run executes.
const runBytes = 10

// run executes opcodes that allocate no memory and do not call the builder, as long as they lie in the window and
// succeed. At the first other opcode, run returns, and step executes it or returns its error. run can execute nearly
// all opcodes of a snapshot. Calling step for each of them would make decoding three times as slow.
func (d *Decoder) run() {
	buf, pos, stack, marks, memo := d.in.buf, d.in.pos, d.stack, d.marks, d.memo
	fence := d.fence()
loop:
	for pos+runBytes <= len(buf) && len(stack) < cap(stack) {
		var v Value
		n := 1
		switch b := buf[pos : pos+runBytes : pos+runBytes]; b[0] {
		case opBinGet, opLongBinGet:
			slot := int(b[1])
			if n = 2; b[0] == opLongBinGet {
				slot, n = int(binary.LittleEndian.Uint32(b[1:5])), 5
			}
			if slot >= len(memo) || memo[slot].kind == 0 {
				break loop
			}
			m := &memo[slot]
			if v = *m; v.slot != 0 && v.flags&fetched == 0 {
				m.flags |= fetched
			}
		case opMemoize:
			if len(stack) == fence || len(memo) == cap(memo) || len(memo) > maxSlot {
				break loop
			}
			top := &stack[len(stack)-1]
			if top.kind == List || top.kind == Dict {
				if top.slot != 0 {
					break loop
				}
				top.slot = uint32(len(memo)) + 1
			}
			memo = append(memo, *top)
			pos++
			continue
		case opMark:
			if len(marks) == cap(marks) || d.interner != nil && isFetch(b[1]) && isEmptyList(stack, fence) {
				break loop
			}
			fence = len(stack)
			marks = append(marks, uint32(fence))
			pos++
			continue
		case opBinInt:
			v, n = intValue(int64(int32(binary.LittleEndian.Uint32(b[1:5])))), 5
		case opBinInt1:
			v, n = intValue(int64(b[1])), 2
		case opBinInt2:
			v, n = intValue(int64(binary.LittleEndian.Uint16(b[1:3]))), 3
		case opLong1:
			width := uint(b[1])
			if width == 0 || width > 8 {
				break loop
			}
			unused := 64 - 8*width
			v, n = intValue(int64(binary.LittleEndian.Uint64(b[2:10])<<unused)>>unused), int(2+width)
		case opEmptyDict:
			v = Value{kind: Dict, depth: 1}
		case opEmptyList:
			v = Value{kind: List, depth: 1}
		case opEmptyTuple:
			v = Value{kind: Tuple, depth: 1}
		case opNone:
			v = Value{kind: None}
		case opNewTrue:
			v = boolValue(true)
		case opNewFalse:
			v = boolValue(false)
		default:
			break loop
		}
		stack = append(stack, v)
		pos += n
	}
	d.in.pos, d.stack, d.marks, d.memo = pos, stack, marks, memo
}

func isFetch(op byte) bool { return op == opBinGet || op == opLongBinGet }

// isEmptyList reports whether the top of the stack, above the last mark, is a list without items.
func isEmptyList(stack []Value, fence int) bool {
	n := len(stack)
	return n > fence && stack[n-1].kind == List && stack[n-1].tag == 0
}

// A fetchedList has the Ref of a list whose items were all fetched from the memo. A memo slot does not change after it
// has been fetched, so the same opcodes fetch the same items again.
type fetchedList struct {
	ref   Ref
	depth uint8
}

const (
	// maxFetches is the largest number of bytes of the opcodes of one remembered list. maxFetchedBytes is the same for
	// all remembered lists together; beyond it, all are forgotten. fetchedCost is the memory of a remembered list in
	// addition to its opcodes.
	maxFetches      = 4 << 10
	maxFetchedBytes = 16 << 20
	fetchedCost     = 64
)

// fetch fills the empty list on top of the stack if all opcodes from the next MARK to the APPENDS are fetches from the
// memo. fetch returns false if other opcodes lie in between. If the builder interns the list, fetch does not look up
// its items again. The stacks of events are lists of this kind: a few thousand different stacks among millions.
func (d *Decoder) fetch() (done bool, err error) {
	if d.interner == nil || !isEmptyList(d.stack, d.fence()) {
		return false, nil
	}
	top := &d.stack[len(d.stack)-1]
	if top.slot != 0 && d.memo[top.slot-1].flags&fetched != 0 {
		return false, nil
	}
	from := d.in.pos + 1
	end, items := endOfFetches(d.in.buf, from)
	if items == 0 || end == len(d.in.buf) || d.in.buf[end] != opAppends {
		return false, nil
	}
	known, ok := d.lists[string(d.in.buf[from:end])]
	if !ok {
		return true, d.firstFetch(from, end)
	}
	d.in.pos = end
	d.at = d.in.offset()
	d.in.pos++
	if d.elements += int64(items); d.elements > d.limits.Elements {
		return false, d.exceeded("elements", d.limits.Elements)
	}
	top.depth, top.tag, top.n = known.depth, known.ref.Tag, known.ref.ID
	if top.slot != 0 {
		d.memo[top.slot-1] = *top
	}
	return true, nil
}

// endOfFetches returns the position at which a sequence of fetches from the memo ends that begins at from, and how many
// fetches it has.
func endOfFetches(buf []byte, from int) (end, items int) {
	for end = from; end < len(buf) && end-from < maxFetches; items++ {
		n := 5
		if op := buf[end]; op == opBinGet {
			n = 2
		} else if op != opLongBinGet {
			break
		}
		if end+n > len(buf) {
			break
		}
		end += n
	}
	return end, items
}

// firstFetch executes the opcodes from the MARK to the APPENDS at end, which fetch the items of a list, and remembers
// the Ref that the builder returned.
func (d *Decoder) firstFetch(from, end int) error {
	for d.in.pos < end {
		d.at = d.in.offset()
		op := d.in.buf[d.in.pos]
		d.in.pos++
		if err := d.step(op); err != nil {
			return err
		}
		d.run()
	}
	d.at = d.in.offset()
	d.in.pos++
	if err := d.build(opAppends); err != nil {
		return err
	}
	v := d.stack[len(d.stack)-1]
	if !d.interner.Interned(v.Ref()) {
		return nil
	}
	cost := end - from + fetchedCost
	if d.listsBytes+cost > maxFetchedBytes {
		clear(d.lists)
		d.listsBytes = 0
	}
	d.listsBytes += cost
	if more := d.listsBytes - d.listsCharged; more > 0 {
		d.listsCharged = d.listsBytes
		if err := d.Charge(int64(more)); err != nil {
			return err
		}
	}
	if d.lists == nil {
		d.lists = map[string]fetchedList{}
	}
	d.lists[string(d.in.buf[from:end])] = fetchedList{v.Ref(), v.depth}
	return nil
}
