/**
 * A Clock has the times of events, in µs after the first event: either of all events or only of the shown events. An
 * event between two events with known times gets the time of the earlier one.
 */
export class Clock {
  private readonly us: Float64Array

  /** steps has, for each event with a known time, the time since the previous such event. events lists these events. If
      events is null, the times of all events are known, from the first event on. */
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

  /** at returns the time of an event. If this time is unknown, at returns the time of the last event before it whose
      time is known. Event 0 is the state before the first event. */
  at(event: number): number {
    if (!this.events) return this.us[Math.min(Math.max(event, 1), this.us.length) - 1]
    return this.us[lastAtMost(this.events, event)]
  }

  /** eventAt returns the last event with a known time that is not after us. */
  eventAt(us: number): number {
    const i = lastAtMost(this.us, us)
    return this.events ? this.events[i] : i + 1
  }
}

/** lastAtMost returns the index of the last value that is at most v. If no value is, it returns 0. */
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
