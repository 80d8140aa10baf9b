package join

// findLines finds the line of the script that requested each allocation; 0 = not known. An allocation of a step in
// which the agent did not follow lines takes the line of its match.
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
