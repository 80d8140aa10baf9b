/**
 * A Clock tells when events were, in µs after the first. It knows all events up to the last, or those alone that are
 * shown; what happened between two of these has the time of the earlier.
 */
export class Clock {
  private readonly us: Float64Array

  /** The steps are from each known event to the next. Of events null all are known, from the first on. */
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

  /** at is when an event was, or the last that is known before it; event 0 is the state before the first. */
  at(event: number): number {
    if (!this.events) return this.us[Math.min(Math.max(event, 1), this.us.length) - 1]
    return this.us[lastAtMost(this.events, event)]
  }

  /** eventAt is the last known event that was at most then. */
  eventAt(us: number): number {
    const i = lastAtMost(this.us, us)
    return this.events ? this.events[i] : i + 1
  }
}

/** lastAtMost returns the place of the last value that is at most v, and 0 if there is none. */
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
