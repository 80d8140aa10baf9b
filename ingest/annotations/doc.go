// Package annotations finds the phases of a memory snapshot. Package annotations uses the ranges that the script named
// while torch recorded, torch's user_defined events, and a user's rules on stacks. The package takes a snapshot's
// contents and returns intervals of events; it reads no files.
//
// # Ranges
//
// An external annotation is the beginning or the end of a record_function range. Annotations have a time and a name,
// but no thread. So only the nesting of ranges shows which end belongs to which beginning. The innermost range names
// the events in it. Times are whole microseconds. An event in the same microsecond as an end counts as inside. The
// following ranges are ambiguous; they become no phase, but a note says so:
//
//   - Ranges that cross, as ranges of several threads do. No range with the same name becomes a phase.
//   - A range without an end or a beginning. If its peak may have been higher or lower than the peaks of all other
//     ranges of the same name, none of these becomes a phase.
//   - Ranges of a name whose highest or lowest peak depends on events in the same microsecond as an end.
//   - A range that began before the first event that the file still has.
//
// # User-defined events
//
// A user_defined event with a text begins a phase with the text as its name. The phase lasts until the next
// user_defined event with a text. user_defined events are in the order of the allocator's events, so their times are
// not needed.
//
// # Rules
//
// A rule gives patterns for the frames of a phase. Consecutive events belong to the phase as long as their stacks
// contain a matching frame. No rule can match an event without a Python frame. An event without a Python frame belongs
// to a phase if the events before and after it belong to the same phase. Two calls with no request for memory between
// them count as one.
//
// A rule's phase takes precedence over a range, and a range over a user_defined event.
package annotations
