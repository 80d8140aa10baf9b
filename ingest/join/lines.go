package join

// findLines finds the line of the script that asked for each allocation, 0 = the line is not known. Allocations of
// steps in which lines are not followed have the lines of their matches.
func findLines(f *facts, m *matches) []uint32 {
	if len(f.device.Events.Line) == 0 {
		return nil
	}
	lines := make([]uint32, len(f.allocs))
	for i := range f.allocs {
		if !f.untraced(i) && f.context.linesFollowedIn(f.birthSpan(i)) {
			lines[i] = f.device.Events.LineOf(int(f.allocs[i].AllocSeq) - 1)
		}
	}
	for i := range lines {
		if match, ok := m.of(i); ok && lines[i] == 0 {
			lines[i] = lines[match]
		}
	}
	return lines
}
