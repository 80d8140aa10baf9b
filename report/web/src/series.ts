// A series has the allocated bytes of a device after each event, divided by a property of the blocks.

import { forever, type Device } from './data'

export type Dimension = 'category' | 'module' | 'phase' | 'line' | 'holder' | 'name'

export interface Key {
  name: string
  color: string
  others: number
}

/** A series has the bytes of each key at each of its moments. The moments are all events of a range, or the highest
    event of each stretch of events. */
export interface Series {
  keys: Key[]
  length: number
  exact: boolean // each moment is a single event
  total: Float64Array
  /** highest returns the moment with the highest total between two moments, and the first if several are equal. */
  highest(from: number, to: number): number
  event(i: number): number
  /** index returns the index of the moment at an event, or of the moment whose stretch has the event. */
  index(event: number): number
  /** state writes the bytes of each key at moment i into an array. */
  state(i: number, into: Float64Array): void
}

const everyState = 64 // the bytes of all keys are stored at every 64th moment; other moments add the changes since then

/** highestOf returns a function that finds the highest moment of a stretch without looking at each moment. A page draws
 * a stretch for each pixel of its width. With hundreds of thousands of moments, looking at each would take a frame's
 * time. */
function highestOf(total: Float64Array): (from: number, to: number) => number {
  const tops = new Int32Array(Math.ceil(total.length / everyState))
  for (let c = 0; c < tops.length; c++) {
    let best = c * everyState
    const end = Math.min(total.length, best + everyState)
    for (let i = best + 1; i < end; i++) if (total[i] > total[best]) best = i
    tops[c] = best
  }
  return (from, to) => {
    let best = from
    for (let i = from; i <= to;) {
      if (i % everyState === 0 && i + everyState - 1 <= to) {
        const top = tops[i / everyState]
        if (total[top] > total[best]) best = top
        i += everyState
      } else {
        if (total[i] > total[best]) best = i
        i++
      }
    }
    return best
  }
}

/** Returns the common name of similar layers: blocks.3.mlp becomes blocks.*.mlp. */
export const folded = (path: string) => path.replace(/(^|\.)\d+(?=\.|$)/g, '$1*')

const greys = [
  '#3d5a80',
  '#98a8b8',
  '#6b8f71',
  '#c9b79c',
  '#7d5a80',
  '#d4a5a5',
  '#4f7c8a',
  '#b8b08d',
  '#8d6e63',
  '#a3b899',
  '#5e6472',
  '#d9c2a7',
  '#86627a',
  '#9fb8ad',
  '#70798c',
  '#cbbfae',
]

/** keysOf returns the keys of a series, and in of, for each kind of pieces, the key under which its bytes count. */
function keysOf(d: Device, by: Dimension, categories: { name: string; color: string }[], peak: number) {
  const n = d.kinds.requested.length,
    of = new Int32Array(n)
  if (by === 'category') {
    of.set(d.kinds.category)
    return { of, keys: categories.map((c) => ({ name: c.name, color: c.color, others: 0 })) }
  }
  const names = new Map<string, { bytes: number; kinds: number[] }>()
  const column = d.kinds[by]
  const live = liveAt(d, peak)
  for (let k = 0; k < n; k++) {
    const text = d.texts[column[k]]
    const name = by === 'module' ? folded(text) : by === 'holder' ? text.replace(/\[\d+\]/g, '[*]') : text
    const got = names.get(name) ?? { bytes: 0, kinds: [] }
    got.bytes += live[k]
    got.kinds.push(k)
    names.set(name, got)
  }
  const most = greys.length - 1
  const order = [...names].sort((a, b) => b[1].bytes - a[1].bytes || (a[0] < b[0] ? -1 : 1))
  const keys: Key[] = []
  order.forEach(([name, got], i) => {
    const at = Math.min(i, most)
    if (i <= most) keys.push({ name, color: greys[i], others: 0 })
    else keys[most] = { name: '', color: greys[most], others: order.length - most }
    for (const k of got.kinds) of[k] = at
  })
  return { of, keys }
}

/** Returns, for each kind of pieces, the bytes of its live pieces just after an event. */
export function liveAt(d: Device, event: number): Float64Array {
  const out = new Float64Array(d.kinds.requested.length)
  for (let p = 0; p < d.kind.length; p++) {
    if (d.begin[p] <= event && d.end[p] > event)
      out[d.kind[p]] += d.kinds.requested[d.kind[p]] + d.kinds.slack[d.kind[p]]
  }
  return out
}

/** seriesOf returns the series of the events that the page has. If there are too many keys, the keys with the most
    bytes at the event peak stay separate, and all others count under one key. */
export function seriesOf(
  d: Device,
  by: Dimension,
  categories: { name: string; color: string }[],
  peak: number,
): Series {
  const { of, keys } = keysOf(d, by, categories, peak)
  const from = d.meta.from,
    n = d.meta.to - from + 1
  const slack = by === 'category' ? categories.findIndex((c) => c.name === 'slack') : -1
  const counts = new Uint32Array(n + 1)
  const each = (add: (at: number, key: number, bytes: number) => void) => {
    for (let p = 0; p < d.kind.length; p++) {
      if (d.end[p] <= from) continue // the block ended before the first of these events
      const k = d.kind[p],
        begin = Math.max(d.begin[p], from) - from
      const requested = d.kinds.requested[k],
        more = d.kinds.slack[k]
      const ends = d.end[p] !== forever && d.end[p] <= d.meta.to,
        end = d.end[p] - from
      const own = slack < 0 ? requested + more : requested
      add(begin, of[k], own)
      if (ends) add(end, of[k], -own)
      if (slack >= 0 && more) {
        add(begin, slack, more)
        if (ends) add(end, slack, -more)
      }
    }
  }
  each((at) => counts[at + 1]++)
  for (let i = 0; i < n; i++) counts[i + 1] += counts[i]
  const first = counts.slice(),
    key = new Uint16Array(counts[n]),
    bytes = new Float64Array(counts[n])
  each((at, k, b) => {
    const j = counts[at]++
    key[j] = k
    bytes[j] = b
  })
  const K = keys.length,
    total = new Float64Array(n)
  const kept = new Float64Array(Math.ceil(n / everyState) * K),
    now = new Float64Array(K)
  let sum = 0
  for (let i = 0; i < n; i++) {
    for (let j = first[i]; j < first[i + 1]; j++) {
      now[key[j]] += bytes[j]
      sum += bytes[j]
    }
    total[i] = sum
    if (i % everyState === 0) kept.set(now, (i / everyState) * K)
  }
  return {
    keys,
    length: n,
    exact: true,
    total,
    highest: highestOf(total),
    event: (i) => from + i,
    index: (e) => Math.max(0, Math.min(n - 1, e - from)),
    state(i, into) {
      const c = Math.floor(i / everyState)
      for (let k = 0; k < K; k++) into[k] = kept[c * K + k]
      for (let j = first[c * everyState + 1]; j < first[i + 1]; j++) into[key[j]] += bytes[j]
    },
  }
}

/** Returns a series of the device's points, if it has any. Points stand for a whole run, and have only categories. */
export function pointsOf(d: Device, categories: { name: string; color: string }[]): Series | null {
  const p = d.points
  if (!p) return null
  const keys = categories.map((c) => ({ name: c.name, color: c.color, others: 0 }))
  const columns = keys.map((k) => p.bytes.get(k.name))
  const total = new Float64Array(p.event.length)
  for (const c of columns) if (c) for (let i = 0; i < total.length; i++) total[i] += c[i]
  return {
    keys,
    length: total.length,
    exact: false,
    total,
    highest: highestOf(total),
    event: (i) => p.event[i],
    index(e) {
      let low = 0,
        high = total.length - 1
      while (low < high) {
        const m = (low + high) >> 1
        if (p.to[m] < e) low = m + 1
        else high = m
      }
      return low
    },
    state(i, into) {
      columns.forEach((c, k) => {
        into[k] = c ? c[i] : 0
      })
    },
  }
}

/** Returns the value of a step function just after an event. */
export function levelAt(events: ArrayLike<number>, values: ArrayLike<number>, event: number): number | null {
  let low = 0,
    high = events.length
  while (low < high) {
    const m = (low + high) >> 1
    if (events[m] <= event) low = m + 1
    else high = m
  }
  return low ? values[low - 1] : null
}

/** Returns the index of the phase to which an event belongs. If it belongs to no phase, the result is -1. */
export function phaseAt(d: Device, event: number): number {
  const { begin, end } = d.phases
  let low = 0,
    high = begin.length
  while (low < high) {
    const m = (low + high) >> 1
    if (begin[m] < event) low = m + 1
    else high = m
  }
  for (let i = low - 1; i >= 0 && i > low - 4; i--) if (begin[i] < event && event <= end[i]) return i
  return -1
}
