// Package annotations finds the phases of a memory snapshot. The package uses the ranges that the script named while
// torch recorded, torch's user_defined events, and a user's rules on stacks. The package is pure: it takes the
// snapshot's contents and returns intervals of events.
//
// # Ranges
//
// An external annotation is one end of a record_function range. Annotations have a time and a name, but no thread. So
// only the nesting of ranges tells which end belongs to which beginning. The innermost range names the events in it.
// Times are whole microseconds. An event in the same microsecond as an end counts as inside. An ambiguous range gives
// no phase but a note:
//
//   - Ranges that cross, as ranges of several threads do: no range with these names is a phase.
//   - A range without an end or a beginning is no phase. If it may have been higher than the others of its name, or
//     lower, they are no phases either.
//   - A name whose highest or lowest value depends on events in the same microsecond as an end.
//   - A range that began before the first event that the file still has.
//
// # User-defined events
//
// A user_defined event with a text begins a phase of that name. The phase lasts until the next such event. A
// user_defined event lies among the allocator's events, so its place needs no time.
//
// # Rules
//
// A rule names the frames of a phase. Consecutive events belong to the phase as long as their stacks contain such a
// frame. No rule can match an event without a Python frame. Such an event belongs to the phase around it if both sides
// have the same phase. Two calls with no request for memory between them count as one.
//
// A rule's phase takes precedence over a range, and a range over a user_defined event.
package annotations
