// Package annotations finds the phases of a memory snapshot: of the ranges that the script named while torch recorded,
// of its user_defined events, and of a user's rules on stacks. It is pure: what the snapshot says in, intervals of
// events out.
//
// # Ranges
//
// An external annotation is one end of a record_function range. Annotations have a time, a name and no thread, so their
// nesting is all that tells which end belongs to which beginning; the innermost range names what lies in it. Times are
// whole microseconds: an event of the same one as an end lies inside. What cannot be told gives no phase, and is said:
//
//   - ranges that cross, as those of several threads do: no range of these names is a phase;
//   - a range without an end or a beginning: it is none, and if it may have been higher than the others of its name, or
//     lower, neither are they;
//   - a name whose highest or lowest changes with the events of the same microsecond as an end;
//   - a range that began before the events that the file still has.
//
// # User-defined events
//
// One with a text begins a phase of that name, which lasts until the next; it lies among the events and needs no time.
//
// # Rules
//
// A rule names the frames of a phase. Events follow each other in a phase as long as their stacks have such a frame; an
// event without a Python frame, which no rule can name, belongs to the phase that is around it on both sides. Two calls
// between which nothing else asked for memory are one.
//
// A rule's phase comes before a range, a range before a user_defined event.
package annotations
