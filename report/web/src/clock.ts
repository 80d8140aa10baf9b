/**
 * A Clock knows the times of events, in µs after the first. It knows either all events up to the last, or only the
 * shown events. An event between two known events has the time of the earlier one.
 */
export class Clock {
  private readonly us: Float64Array

  /** steps has the time from each known event to the next. If events is null, all events are known, from the first
      on. */
  constructor(
    steps: ArrayLike<number>,
    private readonly events: Uint32Array | null,
  ) {
    this.us = new Float64Array(steps.length)
    for (let i = 1; i < steps.length; i++) this.us[i] = this.us[i - 1] + steps[i]
  }

  get last(): number {
    return this.events ? this.events[this.events.length - 1] : this.us.length
  }

  /** at returns the time of an event, or of the last known event before it. Event 0 is the state before the first. */
  at(event: number): number {
    if (!this.events) return this.us[Math.min(Math.max(event, 1), this.us.length) - 1]
    return this.us[lastAtMost(this.events, event)]
  }

  /** eventAt returns the last known event at or before a time. */
  eventAt(us: number): number {
    const i = lastAtMost(this.us, us)
    return this.events ? this.events[i] : i + 1
  }
}

/** lastAtMost returns the index of the last value that is at most v, or 0 if there is none. */
function lastAtMost(values: ArrayLike<number>, v: number): number {
  let low = 0,
    high = values.length - 1
  while (low < high) {
    const m = (low + high + 1) >> 1
    if (values[m] <= v) low = m
    else high = m - 1
  }
  return low
}
