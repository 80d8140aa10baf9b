import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Device } from '../data'
import { count, GiB, mib, ms, percent, shown, signedBytes, signedMib } from '../format'
import { category as words, t } from '../i18n'
import { blocks, breakdownOf, current, currentDevice, failed, peakEvent, seriesFor } from '../model'
import { canvasPen, fontSize, inkOn, svgPen, theme, type Cell, type Layer, type Pen } from '../pen'
import { folded, levelAt, phaseAt, type Dimension, type Series } from '../series'
import { served } from '../source'
import { set, state } from '../state'
import {
  Announce,
  Composition,
  dimmed,
  Lead,
  LeadWithout,
  Loading,
  Missing,
  NoRoom,
  pickCategory,
  Rows,
  Save,
  Seg,
} from '../ui'
import { binary, nice } from './runs'

interface Frame {
  left: number
  right: number
  top: number
  bottom: number
}
const frame = (): Frame => ({ left: innerWidth >= 2200 ? 82 : 68, right: 14, top: 12, bottom: 58 })

/** range returns the first and the last moment in view. */
function range(s: Series): [number, number] {
  const a = state.from === null ? 0 : s.index(state.from),
    b = state.to === null ? s.length - 1 : s.index(state.to)
  return b > a ? [a, b] : [Math.max(0, Math.min(a, s.length - 2)), Math.max(1, Math.min(s.length - 1, a + 1))]
}

/** clockOf returns the times of events. A prediction has none, since the phantom GPU computes nothing. */
const clockOf = (d: Device) => (current()?.row.source === 'predicted' ? null : d.clock)

/** byTime reports whether the axis shows time. */
const byTime = (d: Device) => state.axis === 'time' && clockOf(d) !== null

/** positions returns a function from a moment to its place on the axis: its event, or its time. */
function positions(d: Device, s: Series): (i: number) => number {
  const clock = clockOf(d)
  return byTime(d) && clock ? (i) => clock.at(s.event(i)) : (i) => s.event(i)
}

/** whyNoTimes returns why the axis cannot show time, or '' if it can. */
function whyNoTimes(d: Device): string {
  if (clockOf(d)) return ''
  return d.clock ? t('A prediction has no times.') : t('Nothing says when the events happened.')
}

/** columns returns, for each pixel, the moment with the highest total in it, so that a column shows a state that
    existed. */
function columns(s: Series, at: (i: number) => number, a: number, b: number, width: number): Int32Array {
  const out = new Int32Array(width),
    p0 = at(a),
    p1 = at(b) + (state.axis === 'event' ? 1 : 0),
    scale = (p1 - p0) / width || 1
  let i = a
  for (let x = 0; x < width; x++) {
    // The first moment to the right of the column. The times of neighbours may be out of order by microseconds.
    const limit = p0 + (x + 1) * scale
    let low = i,
      high = b + 1
    while (low < high) {
      const m = (low + high) >> 1
      if (at(m) < limit) low = m + 1
      else high = m
    }
    out[x] = low > i ? s.highest(i, low - 1) : Math.max(a, i - 1)
    i = low
  }
  return out
}

export function momentAt(d: Device, s: Series, fraction: number): number {
  const [a, b] = range(s),
    at = positions(d, s)
  const want = at(a) + fraction * (at(b) + (state.axis === 'event' ? 1 : 0) - at(a))
  let low = a,
    high = b
  while (low < high) {
    const m = (low + high + 1) >> 1
    if (at(m) <= want) low = m
    else high = m - 1
  }
  return low
}

/** areas draws the areas of all keys, and returns where their labels have room. */
function areas(g: Pen, s: Series, index: Int32Array, left: number, Y: (b: number) => number, paper: string) {
  const n = index.length,
    K = s.keys.length,
    now = new Float64Array(K),
    base = new Float64Array(n)
  const all = new Float64Array(n * K)
  for (let x = 0; x < n; x++) {
    if (x && index[x] === index[x - 1]) all.copyWithin(x * K, (x - 1) * K, x * K)
    else {
      s.state(index[x], now)
      all.set(now, x * K)
    }
  }
  const labels: { text: string; x: number; y: number; fill: string }[] = [],
    layers: Layer[] = [],
    bottom = new Float64Array(n).fill(Y(0))
  let under = bottom
  for (let k = 0; k < K; k++) {
    const top = new Float64Array(n)
    let any = false,
      best = 0,
      bestX = 0
    for (let x = 0; x < n; x++) {
      const b = all[x * K + k]
      if (b > 0) any = true
      base[x] += b
      top[x] = Y(base[x])
    }
    if (!any) continue
    const fill = s.keys[k].color
    layers.push({ top, fill: dimmed(s.keys[k].name) && state.by === 'category' ? fill + '40' : fill })
    const text = label(s, k),
      wide = Math.ceil(g.measure(text)) + 10,
      step = Math.max(1, Math.floor(wide / 6))
    for (let x = 0; x + wide < n; x += step) {
      let low = -Infinity,
        high = Infinity
      for (let q = x; q <= x + wide; q += 3) {
        low = Math.max(low, top[q])
        high = Math.min(high, under[q])
      }
      if (high - low > best) {
        best = high - low
        bestX = x + wide / 2
      }
    }
    if (best > fontSize() + 3) {
      const x = Math.round(bestX)
      labels.push({ text, x: left + bestX, y: (under[x] + top[x]) / 2, fill: inkOn(fill) })
    }
    under = top
  }
  g.stack(left, bottom, layers, paper)
  for (const l of labels) g.text(l.text, l.x, l.y, l.fill, 'center', true)
}

export function label(s: Series, k: number): string {
  const key = s.keys[k]
  if (key.others) return `${count(key.others)} ${t('others')}`
  if (state.by === 'category') return words(key.name)
  return shown(key.name) || t(state.by === 'module' ? '(no module)' : '(unknown)')
}

function draw(g: Pen, d: Device, s: Series) {
  const f = frame(),
    c = theme(),
    [a, b] = range(s),
    at = positions(d, s)
  const W = Math.max(20, Math.round(g.width - f.left - f.right)),
    bottom = g.height - f.bottom
  const index = columns(s, at, a, b, W),
    events = [s.event(a), s.event(b)] as const
  let most = 1
  for (const i of index) most = Math.max(most, s.total[i])
  const res = d.reserved
  if (state.reserved && s.exact) {
    most = Math.max(most, levelAt(res.event, res.bytes, events[0]) ?? 0)
    for (let i = 0; i < res.event.length; i++)
      if (res.event[i] >= events[0] && res.event[i] <= events[1]) most = Math.max(most, res.bytes[i])
  }
  if (state.sampled) for (const v of d.samples.used) most = Math.max(most, v)
  if (state.host) for (const v of d.host.resident) most = Math.max(most, v)
  most *= 1.04
  const Y = (bytes: number) => bottom - (bytes / most) * (bottom - f.top)
  const p0 = at(a),
    p1 = at(b) + (state.axis === 'event' ? 1 : 0),
    X = (p: number) => f.left + ((p - p0) / (p1 - p0 || 1)) * W
  const big = most > 2 * GiB
  for (const v of binary(most / (big ? GiB : 2 ** 20), 12)) {
    const y = Math.round(Y(v * (big ? GiB : 2 ** 20))) + 0.5
    g.line([f.left, y, f.left + W, y], c.line)
    g.text(`${v} ${big ? 'GiB' : 'MiB'}`, f.left - 8, y, c.faint, 'right')
  }
  g.clip(f.left, 0, W, g.height, () => {
    areas(g, s, index, f.left, Y, c.paper)
    if (state.a !== null && state.b !== null) {
      const x0 = X(at(s.index(state.a)))
      g.rect(x0, f.top, X(at(s.index(state.b))) - x0, bottom - f.top, c.ink, 0.12)
    }
    for (const [event, name] of [
      [state.a, 'A'],
      [state.b, 'B'],
    ] as const) {
      if (event === null) continue
      const x = X(at(s.index(event)))
      g.line([x, f.top, x, bottom], c.ink, 1)
      g.rect(x - 9, 0, 18, 15, c.ink)
      g.text(name, x, 8, c.paper, 'center', true)
    }
    phaseBands(g, d, s, at, X, events, bottom, c)
    if (state.reserved && res.event.length) {
      const line: number[] = []
      let y = Y(levelAt(res.event, res.bytes, events[0]) ?? 0)
      line.push(f.left, y)
      for (let i = 0; i < res.event.length; i++) {
        if (res.event[i] <= events[0] || res.event[i] > events[1]) continue
        const x = X(at(s.index(res.event[i])))
        line.push(x, y)
        y = Y(res.bytes[i])
        line.push(x, y)
      }
      line.push(f.left + W, y)
      g.line(line, c.ink, 1.2, [5, 3])
      const text = `${t('reserved')} ${mib(levelAt(res.event, res.bytes, events[1]))}`
      // The cursor has its own label.
      const right = X(at(cursorAt(d, s))) > f.left + W - 2 * g.measure(text) ? f.left + W / 2 : f.left + W - 4
      const level = Y(levelAt(res.event, res.bytes, s.event(momentAt(d, s, (right - f.left) / W))) ?? 0)
      if (level > f.top + 12) g.text(text, right, level - 8, c.ink, 'right')
    }
    const sampled = (us: Float64Array, bytes: Float64Array, color: string, dash: number[]) => {
      const line = sampledLine(d, us, bytes, events, (e, us1) => X(state.axis === 'time' ? us1 : at(s.index(e))), Y)
      if (line.length <= 2) return
      if (dash.length) g.line(line, c.paper, 3)
      g.line(line, color, 1.2, dash)
    }
    if (state.sampled) sampled(d.samples.us, d.samples.used, c.warn, [])
    if (state.host) {
      sampled(d.host.us, d.host.resident, c.ink, [1, 3])
      sampled(d.host.us, d.host.pinned, c.soft, [8, 3, 2, 3])
    }
    let free = -Infinity
    for (let i = 0; i < d.marks.event.length; i++) {
      const e = d.marks.event[i]
      if (e < events[0] || e > events[1]) continue
      const x = X(at(s.index(e))),
        text = `◆ ${shown(d.marks.label[i])}`
      g.line([x, f.top, x, bottom], c.ink, 1, [2, 2])
      if (x < free) continue
      g.text(text, x + 4, f.top + 26, c.ink)
      free = x + g.measure(text) + 12
    }
    for (let i = 0; i < d.failed.event.length; i++) {
      const e = d.failed.event[i]
      if (e < events[0] || e > events[1]) continue
      const x = X(at(s.index(e)))
      g.line([x, f.top, x, bottom], c.bad, 2)
      g.text(`✕ ${mib(d.failed.bytes[i])}`, x - 5, f.top + 10, c.bad, 'right', true)
    }
    cursor(g, d, s, at, X, Y, bottom, c)
  })
  const ticks = byTime(d) ? nice(p0 / 1000, p1 / 1000, W / 110) : nice(p0, p1, W / 110).filter(Number.isInteger)
  for (const v of ticks) g.text(count(v), X(byTime(d) ? v * 1000 : v), bottom + 34, c.faint, 'center')
  g.text(byTime(d) ? t('ms, the host’s clock') : t('event'), f.left, bottom + 50, c.faint)
}

/** sampledLine returns the sampled points within the time of the events in view. */
function sampledLine(
  d: Device,
  us: Float64Array,
  bytes: Float64Array,
  [e0, e1]: readonly [number, number],
  X: (event: number, us: number) => number,
  Y: (b: number) => number,
): number[] {
  const line: number[] = []
  if (!d.clock) return line
  for (let i = 0; i < us.length; i++) {
    const event = d.clock.eventAt(us[i])
    if (event >= e0 && event <= e1 && bytes[i] >= 0) line.push(X(event, us[i]), Y(bytes[i]))
  }
  return line
}

/** sampledAt returns the value of the last sample before an event, or -1 for none. */
function sampledAt(d: Device, us: Float64Array, bytes: Float64Array, event: number): number {
  if (!d.clock || event > d.clock.last) return -1
  const now = d.clock.at(event)
  let last = -1
  for (let i = 0; i < us.length && us[i] <= now; i++) last = bytes[i]
  return last
}

const narrow = 4 // width in pixels: the borders of narrower phases would hide the phases

function phaseBands(
  g: Pen,
  d: Device,
  s: Series,
  at: (i: number) => number,
  X: (p: number) => number,
  [e0, e1]: readonly [number, number],
  bottom: number,
  c: ReturnType<typeof theme>,
) {
  const { begin, end, name } = d.phases
  g.rect(0, bottom, g.width, 22, c.sunk)
  for (let i = 0; i < begin.length; i++) {
    if (end[i] <= e0 || begin[i] >= e1 || end[i] <= begin[i]) continue
    const x0 = Math.max(frame().left, X(at(s.index(begin[i])))),
      text = shown(name[i])
    const x1 = Math.min(g.width - frame().right, X(at(s.index(end[i]))))
    if (x1 - x0 < narrow) continue
    g.rect(Math.round(x0), frame().top, 1, bottom + 22 - frame().top, c.edge, 0.6)
    if (g.measure(text) + 8 < x1 - x0) g.text(text, (x0 + x1) / 2, bottom + 11, c.soft, 'center')
  }
}

function cursor(
  g: Pen,
  d: Device,
  s: Series,
  at: (i: number) => number,
  X: (p: number) => number,
  Y: (b: number) => number,
  bottom: number,
  c: ReturnType<typeof theme>,
) {
  const i = cursorAt(d, s),
    x = X(at(i)),
    y = Y(s.total[i]),
    text = mib(s.total[i]),
    w = g.measure(text) + 12
  g.line([x, frame().top, x, bottom + 22], c.ink, 1)
  g.frame(x - 3, y - 3, 6, 6, c.ink, 1.5)
  const left = x + w + 12 > g.width - 14
  g.rect(left ? x - w - 6 : x + 6, Math.max(frame().top, y - 24), w, 20, c.ink)
  g.text(text, left ? x - w / 2 - 6 : x + 6 + w / 2, Math.max(frame().top, y - 24) + 10, c.paper, 'center', true)
}

const cursorAt = (d: Device, s: Series) => s.index(state.event ?? peakEvent(d))

export function zoom(s: Series, factor: number, about: number) {
  const [a, b] = range(s),
    wide = Math.max(Math.min(8, s.length - 1), Math.min(s.length - 1, (b - a) * factor))
  const share = (about - a) / (b - a || 1),
    from = Math.max(0, Math.min(s.length - 1 - wide, about - wide * share))
  set({ from: s.event(Math.round(from)), to: s.event(Math.round(from + wide)) })
}

export function pan(s: Series, share: number) {
  const [a, b] = range(s),
    wide = b - a
  const from = Math.max(0, Math.min(s.length - 1 - wide, Math.round(a + wide * share)))
  set({ from: s.event(from), to: s.event(from + wide) })
}

/** Handles the keys of the views timeline and blocks, which share the axis. */
export function axisKeys(e: KeyboardEvent): boolean {
  const d = blocks(),
    s = d && seriesFor(d, state.by, state.scope === 'whole')
  if (!d || !s) return false
  const i = cursorAt(d, s),
    [a, b] = range(s)
  const go = (to: number) => {
    const at = Math.max(0, Math.min(s.length - 1, to))
    set({ event: s.event(at) })
    if (at < a || at > b) pan(s, at < a ? -(a - at + (b - a) / 4) / (b - a) : (at - b + (b - a) / 4) / (b - a))
  }
  switch (e.key) {
    case 'ArrowLeft':
      go(i - (e.shiftKey ? 100 : 1))
      break
    case 'ArrowRight':
      go(i + (e.shiftKey ? 100 : 1))
      break
    case 'w':
      zoom(s, 0.5, i)
      break
    case 's':
      zoom(s, 2, i)
      break
    case 'a':
      pan(s, -0.3)
      break
    case 'd':
      pan(s, 0.3)
      break
    case 'f':
      set({ from: null, to: null })
      break
    case 'p':
      goTo(peakEvent(d))
      break
    case 'n': {
      let k = i + 1
      let most = 0
      for (let q = 0; q <= i; q++) most = Math.max(most, s.total[q])
      while (k < s.length - 1 && s.total[k] <= most) k++
      go(k)
      break
    }
    case '[':
      setA(s.event(i))
      break
    case ']':
      setB(s.event(i))
      break
    case 'Escape':
      set({ a: null, b: null, category: null })
      break
    default:
      return false
  }
  return true
}

/** Sets A. If B would then not lie after A, B is removed. */
const setA = (event: number) => {
  set({ a: event, b: state.b !== null && state.b > event ? state.b : null })
}
const setB = (event: number) => {
  set({ b: event, a: state.a !== null && state.a < event ? state.a : null })
}

/** goTo shows a moment and its surroundings. */
export const goTo = (event: number, patch: Partial<typeof state> = {}) => {
  set({ event, from: Math.max(0, event - 150), to: event + 150, scope: 'exact', ...patch })
}

export const chartHeight = () =>
  innerWidth < 760 ? 380 : Math.max(430, Math.min(innerWidth >= 2200 ? 980 : 640, innerHeight - 296))

export function grown(s: Series, a: number, b: number) {
  const was = new Float64Array(s.keys.length),
    is = new Float64Array(s.keys.length)
  s.state(s.index(a), was)
  s.state(s.index(b), is)
  return s.keys
    .map((key, k) => ({ name: key.name, label: label(s, k), color: key.color, bytes: is[k] - was[k] }))
    .filter((r) => r.bytes)
}

/** grownBy lists whose bytes are more at one moment than at another: by holder, by tensor or module, and by line. */
function grownBy(d: Device, a: number, b: number): { text: string; bytes: number }[] {
  const out = new Map<string, number>()
  for (let p = 0; p < d.kind.length; p++) {
    const was = d.begin[p] <= a && d.end[p] > a,
      is = d.begin[p] <= b && d.end[p] > b
    if (was === is) continue
    const k = d.kind[p],
      holder = d.texts[d.kinds.holder[k]] || d.texts[d.kinds.name[k]] || d.texts[d.kinds.module[k]],
      text =
        [folded(holder).replace(/\[\d+\]/g, '[*]'), d.texts[d.kinds.line[k]]].filter(Boolean).join(', ') ||
        t('(unknown)'),
      bytes = d.kinds.requested[k] + d.kinds.slack[k]
    out.set(text, (out.get(text) ?? 0) + (is ? bytes : -bytes))
  }
  return [...out]
    .map(([text, bytes]) => ({ text, bytes }))
    .filter((q) => q.bytes)
    .sort((x, y) => Math.abs(y.bytes) - Math.abs(x.bytes))
}

export function detailNote(d: Device) {
  if (d.meta.detail === 'all')
    return t(
      '{n} allocator events, none dropped. Each column of pixels shows its highest event; zoom in to a single one.',
      { n: count(d.meta.events) },
    )
  return (
    <>
      <span class="tag warn">◈ {t('reduced detail')}</span>{' '}
      {served && d.meta.detail === 'window'
        ? t('Of {n} events {from} to {to} are here one by one. Zoom into another stretch to have its events fetched.', {
            n: count(d.meta.events),
            from: count(d.meta.from),
            to: count(d.meta.to),
          })
        : d.meta.detail === 'window'
          ? t(
              'Of {n} events those of the step of the peak, {from} to {to}, are here one by one; the rest as stretches of which each shows its highest event.',
              { n: count(d.meta.events), from: count(d.meta.from), to: count(d.meta.to) },
            )
          : t('Of {n} events stretches are here, of which each shows its highest event.', {
              n: count(d.meta.events),
            })}{' '}
      {t('The peak is exact.')}
    </>
  )
}

export function Timeline() {
  const canvas = useRef<HTMLCanvasElement>(null),
    mini = useRef<HTMLCanvasElement>(null)
  const r = current(),
    at = currentDevice(),
    d = at ? blocks() : null
  const whole = state.scope === 'whole' && at?.meta.detail === 'window'
  const s = d ? seriesFor(d, state.by, whole) : null
  useLayoutEffect(() => {
    if (!canvas.current || !d || !s) return
    draw(canvasPen(canvas.current, chartHeight()), d, s)
    if (mini.current) minimap(canvasPen(mini.current, 46), d, s)
  })
  if (!r || !at)
    return (
      <>
        <LeadWithout run={r?.label ?? ''} peak={r?.row.peak_bytes} />
        <Missing what={`${shown(r?.label ?? '')} has no allocator events: record them without --bare.`} />
      </>
    )
  if (!d) return failed ? <Missing what={failed} /> : <Loading />
  if (!s) return <NoRoom run={r} />
  const i = cursorAt(d, s),
    event = s.event(i),
    [a, b] = range(s)
  const now = new Float64Array(s.keys.length),
    before = new Float64Array(s.keys.length)
  s.state(i, now)
  if (i > 0) s.state(i - 1, before)
  const changes =
    s.exact && i > 0 ? s.keys.map((_, k) => ({ k, bytes: now[k] - before[k] })).filter((q) => q.bytes) : []
  const phase = phaseAt(d, event),
    brushed = state.a !== null && state.b !== null,
    recorded = recordedSteps(d, s)
  const diff = brushed ? grown(s, state.a!, state.b!).sort((p, q) => Math.abs(q.bytes) - Math.abs(p.bytes)) : []
  const who = brushed && s.exact ? grownBy(d, state.a!, state.b!) : []
  // Bare steps can reserve more than the events show.
  const most = breakdownOf(r, at.meta.rank, at.meta.device)?.peak_reserved_bytes ?? 0,
    later = d.reserved.bytes.length && most > d.reserved.bytes.reduce((x, y) => Math.max(x, y), 0) ? most : 0
  const reservedAt = (e: number) => levelAt(d.reserved.event, d.reserved.bytes, e)
  const total = diff.reduce((x, q) => x + q.bytes, 0),
    res = brushed ? (reservedAt(state.b!) ?? 0) - (reservedAt(state.a!) ?? 0) : 0,
    phaseName = phase < 0 ? '—' : shown(d.phases.name[phase])
  const answer = brushed
    ? total > 0
      ? t('Between A and B memory grew by {bytes}, {share} of it {category}', {
          bytes: mib(total),
          share: percent(diff[0].bytes, total),
          category: diff[0].label,
        }) + (who.length && who[0].bytes > total / 2 ? ` (${shown(who[0].text)})` : '')
      : total < 0
        ? t('Between A and B memory fell by {bytes}', { bytes: mib(-total) })
        : t(
            res > 0
              ? 'At B as much is allocated as at A; reserved memory grew by {bytes}'
              : 'At B as much is allocated as at A: nothing grew',
            { bytes: mib(res) },
          )
    : t('{run} holds {bytes} at event {event}, in {phase}', {
        run: shown(r.label),
        bytes: mib(s.total[i]),
        event: count(event),
        phase: phaseName,
      })
  const rows = (): Cell[][] => {
    const out: Cell[][] = [['event', 'phase', 'allocated_bytes', ...s.keys.map((k, q) => k.name || label(s, q))]]
    const state1 = new Float64Array(s.keys.length)
    for (let q = a; q <= b; q++) {
      s.state(q, state1)
      const f = phaseAt(d, s.event(q))
      out.push([s.event(q), f < 0 ? '' : d.phases.name[f], s.total[q], ...state1])
    }
    return out
  }
  const svg = () => {
    const g = svgPen(canvas.current?.clientWidth ?? 1100, chartHeight(), theme().paper)
    draw(g, d, s)
    return g.done(`${r.label}: GPU memory over the allocator's events`)
  }
  const lines = d.kinds.line.some((l) => l !== 0),
    held = d.kinds.holder.some((h) => h !== 0),
    pick = state.by === 'category' ? pickCategory : undefined
  const place = (e: PointerEvent | WheelEvent | MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect(),
      f = frame()
    return momentAt(d, s, Math.max(0, Math.min(1, (e.clientX - box.left - f.left) / (box.width - f.left - f.right))))
  }
  const step = phase < 0 ? null : d.phases.step[phase]
  return (
    <>
      <Lead answer={answer}>
        {shown(r.label)}, {at.meta.device}
        {at.meta.rank ? ` of rank ${at.meta.rank}` : ''}: {detailNote(d)}
      </Lead>
      <div class="bar">
        <Seg<Dimension>
          label="By"
          value={state.by}
          pick={(by) => {
            set({ by })
          }}
          options={[
            ['category', t('Category')],
            ['module', t('Module')],
            ['phase', t('Phase')],
            ['line', t('Line'), lines ? '' : t('This run has no lines of its script.')],
            ['holder', t('Holder'), held ? '' : t('Nobody looked for holders in this run.')],
            ['name', t('Tensor')],
          ]}
        />
        <Seg
          label="Axis"
          value={state.axis}
          pick={(axis) => {
            set({ axis })
          }}
          options={[
            ['event', t('Events')],
            ['time', t('Time'), whyNoTimes(d)],
          ]}
        />
        {d.meta.detail === 'window' ? (
          <Seg
            label="Scope"
            value={state.scope}
            pick={(scope) => {
              set({ scope, from: null, to: null })
            }}
            options={[
              ['exact', t('Step of the peak')],
              ['whole', t('Whole run')],
            ]}
          />
        ) : null}
        <span class="seg">
          <button
            type="button"
            onClick={() => {
              set({ from: null, to: null })
            }}
          >
            {t('Fit')} <kbd>f</kbd>
          </button>
          <button
            type="button"
            onClick={() => {
              goTo(peakEvent(d))
            }}
          >
            {t('Peak')} <kbd>p</kbd>
          </button>
        </span>
        {steps(d, recorded)}
        <label class="cap">
          <input
            type="checkbox"
            checked={state.reserved}
            onChange={() => {
              set({ reserved: !state.reserved })
            }}
          />{' '}
          {t('reserved')}
        </label>
        {d.samples.us.length && d.clock ? (
          <label class="cap">
            <input
              type="checkbox"
              checked={state.sampled}
              onChange={() => {
                set({ sampled: !state.sampled })
              }}
            />{' '}
            NVML
          </label>
        ) : null}
        {d.host.us.length && d.clock ? (
          <label class="cap">
            <input
              type="checkbox"
              checked={state.host}
              onChange={() => {
                set({ host: !state.host })
              }}
            />{' '}
            {t('host memory')}
          </label>
        ) : null}
        <Save name={`dpsight-timeline-${r.label}`} svg={svg} rows={rows} />
      </div>
      <div class="split">
        <div>
          {state.table ? (
            <Rows rows={rows()} />
          ) : (
            <div class="panel stage">
              <canvas
                ref={mini}
                aria-hidden="true"
                class="mini-map"
                onPointerDown={(e) => {
                  jump(e, s)
                }}
                onPointerMove={(e) => {
                  if (e.buttons) jump(e, s)
                }}
              />
              <canvas
                ref={canvas}
                id="timeline"
                tabIndex={0}
                role="img"
                aria-label={`Allocated memory of ${shown(r.label)} by ${state.by}; arrow keys move the cursor`}
                {...pointer(place, (k) => s.event(k), s)}
              />
              <div class="hint">
                <span>
                  <kbd>←</kbd> <kbd>→</kbd> {t('one event')}
                </span>
                <span>
                  <kbd>w</kbd> <kbd>s</kbd> {t('zoom')}
                </span>
                <span>
                  <kbd>a</kbd> <kbd>d</kbd> {t('pan')}
                </span>
                <span>
                  <kbd>{t('drag')}</kbd> {t('brush')}
                </span>
                <span>
                  <kbd>[</kbd> <kbd>]</kbd> {t('set A, B')}
                </span>
                <span>
                  <kbd>n</kbd> {t('next new maximum')}
                </span>
                <span class="sp" />
                <span>
                  {count(b - a + 1)} / {count(s.length)} {t('events in view')}
                </span>
              </div>
            </div>
          )}
        </div>
        <aside class="stack">
          {brushed || recorded.length > 1 ? (
            <div class="panel pad" id="grew">
              <h2>
                {t('What grew between A and B')}{' '}
                {brushed ? (
                  <small>
                    {count(Math.abs(state.b! - state.a!))} {t('event')}
                  </small>
                ) : null}
              </h2>
              {recorded.length > 1 ? ends(d, recorded) : null}
              {brushed ? (
                <>
                  <p class="cap">
                    {count(state.a!)} → {count(state.b!)}
                  </p>
                  <Composition rows={diff} total={total} signed />
                  {who.length ? (
                    <div class="list plainlist" id="who">
                      {who.slice(0, 6).map((q) => (
                        <>
                          <span class="nm mono" title={shown(q.text)}>
                            {shown(q.text)}
                          </span>
                          <span class={`num ${q.bytes > 0 ? 'more' : 'less'}`}>{signedMib(q.bytes)}</span>
                          <span class="pc" />
                        </>
                      ))}
                    </div>
                  ) : null}
                  <p class="sum">
                    <b>{t('allocated')}</b>
                    <b class="num" data-n="grew">
                      {signedMib(total)}
                    </b>
                  </p>
                  <p class="sum">
                    <span>{t('reserved')}</span>
                    <span class="num">{signedMib(res)}</span>
                  </p>
                </>
              ) : null}
            </div>
          ) : null}
          <div class="panel pad" id="cursor">
            <h2>
              {t('At the cursor')}{' '}
              <small>
                {t('event')} {count(event)}
              </small>
            </h2>
            <dl class="kv">
              <dt>{t('phase')}</dt>
              <dd>
                {phaseName}
                {step !== null && step >= 0 ? ` · ${t('Step').toLowerCase()} ${step}` : ''}
                {clockOf(d) && event <= clockOf(d)!.last ? ` · ${ms(clockOf(d)!.at(event) / 1000)}` : ''}
              </dd>
              <dt>{t('change')}</dt>
              <dd>
                {changes.length
                  ? changes
                      .slice(0, 4)
                      .map((q) => `${signedBytes(q.bytes)} ${label(s, q.k)}`)
                      .join(', ')
                  : '—'}
              </dd>
              <dt>{t('allocated')}</dt>
              <dd>
                <b data-n="allocated">{mib(s.total[i])}</b>
              </dd>
              <dt>{t('reserved')}</dt>
              <dd>
                {mib(reservedAt(event))}
                {later ? (
                  <div class="cap">{t('{bytes} in steps whose events were not recorded', { bytes: mib(later) })}</div>
                ) : null}
              </dd>
              {known(d, event).map(([name, bytes]) => (
                <>
                  <dt>{name}</dt>
                  <dd>{mib(bytes)}</dd>
                </>
              ))}
            </dl>
            <Composition
              rows={s.keys
                .map((key, k) => ({ name: key.name, label: label(s, k), color: key.color, bytes: now[k] }))
                .filter((q) => q.bytes)}
              total={s.total[i]}
              {...(pick ? { pick } : {})}
            />
          </div>
        </aside>
      </div>
      <Announce text={`${t('event')} ${count(event)}, ${mib(s.total[i])}, ${phaseName}`} />
    </>
  )
}

/** Returns the values that were sampled last before an event, beside torch's own counters. */
function known(d: Device, event: number): [string, number][] {
  const all: [string, number][] = [
    ['NVML', sampledAt(d, d.samples.us, d.samples.used, event)],
    [t('host memory'), sampledAt(d, d.host.us, d.host.resident, event)],
    [t('pinned'), sampledAt(d, d.host.us, d.host.pinned, event)],
  ]
  return all.filter((q) => q[1] >= 0)
}

interface StepOf {
  step: number
  i: number
}

/** Returns the steps whose events are loaded. */
const recordedSteps = (d: Device, s: Series): StepOf[] =>
  Array.from(d.steps.step, (step, i) => ({ step, i })).filter(
    (q) => d.steps.recorded[q.i] && d.steps.end[q.i] > s.event(0) && d.steps.begin[q.i] < s.event(s.length - 1),
  )

function StepPick(p: { label: string; all: StepOf[]; chosen: StepOf | undefined; pick: (i: number | null) => void }) {
  return (
    <label class="pick">
      <span>{p.label}</span>
      <select
        value={p.chosen ? String(p.chosen.i) : ''}
        onChange={(e) => {
          p.pick(e.currentTarget.value === '' ? null : Number(e.currentTarget.value))
        }}
      >
        <option value="">—</option>
        {p.all.slice(0, 500).map((q) => (
          <option key={q.i} value={String(q.i)}>
            {q.step}
          </option>
        ))}
      </select>
    </label>
  )
}

/** Lets the reader go to a step if a run has several. */
const steps = (d: Device, all: StepOf[]) =>
  all.length < 2 ? null : (
    <StepPick
      label={t('Step')}
      all={all}
      chosen={all.find((q) => state.from === d.steps.begin[q.i] + 1 && state.to === d.steps.end[q.i])}
      pick={(i) => {
        set(i === null ? { from: null, to: null } : { from: d.steps.begin[i] + 1, to: d.steps.end[i] })
      }}
    />
  )

/** Offers the ends of two steps as A and B, which is what readers compare most. */
function ends(d: Device, all: StepOf[]) {
  const at = (event: number | null) => all.find((q) => d.steps.end[q.i] === event),
    end = (i: number) => d.steps.end[i]
  return (
    <p class="picks">
      <StepPick
        label={t('A: end of step')}
        all={all}
        chosen={at(state.a)}
        pick={(i) => {
          if (i === null) set({ a: null })
          else setA(end(i))
        }}
      />{' '}
      <StepPick
        label={t('B: end of step')}
        all={all}
        chosen={at(state.b)}
        pick={(i) => {
          if (i === null) set({ b: null })
          else setB(end(i))
        }}
      />
    </p>
  )
}

let kept: { of: Series; highest: Float64Array } | null = null

/** skyline returns the highest total of each column over the whole axis. It does not change when a reader zooms. */
function skyline(s: Series, width: number): Float64Array {
  if (kept?.of === s && kept.highest.length === width) return kept.highest
  const index = columns(s, (i) => i, 0, s.length - 1, width)
  kept = { of: s, highest: Float64Array.from(index, (i) => s.total[i]) }
  return kept.highest
}

function minimap(g: Pen, d: Device, s: Series) {
  const f = frame(),
    c = theme(),
    W = Math.max(20, Math.round(g.width - f.left - f.right)),
    highest = skyline(s, W)
  let most = 1
  for (const b of highest) most = Math.max(most, b)
  g.stack(
    f.left,
    new Float64Array(W).fill(44),
    [{ fill: c.edge, top: highest.map((b) => 44 - (b / most) * 38) }],
    c.edge,
  )
  for (let i = 0; i < d.steps.step.length; i++) {
    if (!d.steps.recorded[i] || !s.exact) continue
    const x = f.left + (s.index(d.steps.begin[i]) / (s.length - 1 || 1)) * W
    g.line([x, 4, x, 44], c.paper, 1)
  }
  const [a, b] = range(s),
    X = (i: number) => f.left + (i / (s.length - 1 || 1)) * W
  g.rect(f.left, 4, X(a) - f.left, 40, c.bg, 0.7)
  g.rect(X(b), 4, f.left + W - X(b), 40, c.bg, 0.7)
  g.frame(X(a), 3.5, Math.max(2, X(b) - X(a)), 41, c.ink, 1.5)
}

function jump(e: PointerEvent & { currentTarget: HTMLCanvasElement }, s: Series) {
  const box = e.currentTarget.getBoundingClientRect(),
    f = frame(),
    [a, b] = range(s)
  const mid = ((e.clientX - box.left - f.left) / (box.width - f.left - f.right)) * (s.length - 1),
    wide = b - a
  const from = Math.max(0, Math.min(s.length - 1 - wide, Math.round(mid - wide / 2)))
  set({ from: s.event(from), to: s.event(from + wide) })
}

let down: { x: number; event: number; pinned: boolean } | null = null

/** Handles the pointer, which moves the cursor, brushes, zooms and pans. place returns the moment under the pointer. */
export function pointer(
  place: (e: PointerEvent | WheelEvent | MouseEvent) => number,
  event: (i: number) => number,
  s: Series,
) {
  return {
    onPointerDown(e: PointerEvent & { currentTarget: HTMLCanvasElement }) {
      down = { x: e.clientX, event: event(place(e)), pinned: e.shiftKey }
      e.currentTarget.setPointerCapture(e.pointerId)
    },
    onPointerMove(e: PointerEvent & { currentTarget: HTMLCanvasElement }) {
      const now = event(place(e))
      if (down?.pinned) {
        const [a, b] = range(s)
        pan(s, ((down.x - e.clientX) / e.currentTarget.clientWidth) * ((b - a) / (b - a || 1)))
        down.x = e.clientX
        return
      }
      if (down && e.pointerType !== 'touch' && Math.abs(e.clientX - down.x) > 4) {
        set({ a: Math.min(down.event, now), b: Math.max(down.event, now), event: now })
      } else set({ event: now })
    },
    onPointerUp() {
      down = null
    },
    onPointerCancel() {
      down = null
    },
    onWheel(e: WheelEvent) {
      e.preventDefault()
      zoom(s, e.deltaY > 0 ? 1.18 : 1 / 1.18, place(e))
    },
    onDblClick() {
      set({ from: null, to: null })
    },
  }
}

export { range, frame, positions, cursorAt, phaseBands }
