import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { forever, type Device } from '../data'
import { count, mib, shown, GiB } from '../format'
import { category as words, t } from '../i18n'
import { about, blocks, current, currentDevice, failed, peakEvent, seriesFor } from '../model'
import { canvasPen, svgPen, theme, type Cell, type Pen } from '../pen'
import { levelAt, phaseAt, type Series } from '../series'
import { set, state } from '../state'
import { dimmed, Lead, LeadWithout, Loading, Missing, NoRoom, Rows, Save, Seg, Swatch } from '../ui'
import { binary, nice } from './runs'
import {
  chartHeight,
  cursorAt,
  detailNote,
  frame,
  goTo,
  momentAt,
  phaseBands,
  pointer,
  positions,
  range,
} from './timeline'

/** A drawn piece of a block, or several pieces that are thinner than a pixel. */
interface Box {
  piece: number // -1 for several pieces
  category: number
  x: number
  y: number
  w: number
  h: number
}

const bytesOf = (d: Device, p: number) => d.kinds.requested[d.kind[p]] + d.kinds.slack[d.kind[p]]

/** layout stacks the pieces of each column of pixels by category. Pieces thinner than a pixel form one box for their
    category. */
function layout(d: Device, s: Series, g: Pen) {
  const f = frame(),
    [a, b] = range(s)
  const at = positions(d, s),
    W = Math.max(20, Math.round(g.width - f.left - f.right)),
    bottom = g.height - f.bottom
  let most = 1
  for (let i = a; i <= b; i++) most = Math.max(most, s.total[i])
  // Around a peak, blocks that stay would leave no room for blocks that come and go, so the axis begins above zero.
  let lowest = most
  for (let i = a; i <= b; i++) lowest = Math.min(lowest, s.total[i])
  const floor = state.mode === 'whole' || lowest < most * 0.5 ? 0 : Math.floor(lowest * 0.72)
  const span = (most - floor) * 1.03
  const Y = (bytes: number) => bottom - ((bytes - floor) / span) * (bottom - f.top)
  const thin = (span / (bottom - f.top)) * 0.6,
    e0 = s.event(a),
    e1 = s.event(b)
  const C = about.categories.length,
    slack = about.categories.findIndex((c) => c.name === 'slack')
  const big: number[][] = Array.from({ length: C }, () => [])
  let inView = 0,
    merged = 0
  for (let p = 0; p < d.kind.length; p++) {
    if (d.begin[p] > e1 || d.end[p] <= e0) continue
    if (!d.next[p]) inView++
    if (d.kinds.requested[d.kind[p]] >= thin) big[d.kinds.category[d.kind[p]]].push(p)
    else if (!d.next[p]) merged++
  }
  const p0 = at(a),
    p1 = at(b) + (state.axis === 'event' ? 1 : 0),
    scale = (p1 - p0) / W || 1
  const now = new Float64Array(s.keys.length),
    boxes: Box[] = [],
    open = new Map<number, Box>()
  let i = a,
    last = -1
  for (let x = 0; x < W; x++) {
    let best = -1
    const limit = p0 + (x + 1) * scale
    while (i <= b && at(i) < limit) {
      if (best < 0 || s.total[i] > s.total[best]) best = i
      i++
    }
    if (best >= 0) last = best
    if (last < 0) last = a
    if (best < 0 && x) {
      for (const box of open.values()) if (box.x + box.w === f.left + x) box.w++
      continue
    }
    s.state(last, now)
    const e = s.event(last)
    let y = 0
    const put = (id: number, piece: number, category: number, bytes: number) => {
      const top = Y(y + bytes),
        h = Y(y) - top,
        was = open.get(id)
      y += bytes
      if (was && was.x + was.w === f.left + x && Math.abs(was.y - top) < 0.05 && Math.abs(was.h - h) < 0.05) {
        was.w++
        return
      }
      const box = { piece, category, x: f.left + x, y: top, w: 1, h }
      open.set(id, box)
      boxes.push(box)
    }
    for (let c = 0; c < C; c++) {
      let rest = now[c]
      const live: number[] = []
      for (const p of big[c]) if (d.begin[p] <= e && d.end[p] > e) live.push(p)
      for (const p of live) rest -= d.kinds.requested[d.kind[p]]
      if (rest > 0 && c !== slack) put(-1 - c, -1, c, rest)
      for (const p of live) put(p, p, c, d.kinds.requested[d.kind[p]])
    }
    if (now[slack] > 0) put(-1 - slack, -1, slack, now[slack])
  }
  return { boxes, Y, floor, most, inView, merged, bottom, e0, e1 }
}

function drawStack(g: Pen, d: Device, s: Series, hover: number): { boxes: Box[]; thin: number } {
  const l = layout(d, s, g),
    f = frame(),
    c = theme(),
    at = positions(d, s),
    [a, b] = range(s)
  const W = Math.max(20, Math.round(g.width - f.left - f.right))
  const p0 = at(a),
    p1 = at(b) + (state.axis === 'event' ? 1 : 0),
    X = (p: number) => f.left + ((p - p0) / (p1 - p0 || 1)) * W
  const unit = l.most > 2 * GiB ? GiB : 2 ** 20
  for (const v of binary(l.most / unit, 14)) {
    const y = l.Y(v * unit)
    if (y > l.bottom) continue
    g.line([f.left, y, f.left + W, y], c.line)
    g.text(`${v} ${unit === GiB ? 'GiB' : 'MiB'}`, f.left - 8, y, c.faint, 'right')
  }
  g.clip(f.left, f.top, W, l.bottom - f.top + 24, () => {
    for (const box of l.boxes) {
      if (box.y > l.bottom) continue
      const h = Math.min(box.h, l.bottom - box.y),
        color = shade(about.categories[box.category].color, box.piece >= 0 && oddLayer(d, box.piece))
      const dim = dimmed(about.categories[box.category].name) || (hover >= 0 && box.piece >= 0 && box.piece !== hover)
      g.rect(box.x, box.y, box.w, h, color, dim ? 0.45 : 1)
      if (h > 3) g.line([box.x, box.y + 0.4, box.x + box.w, box.y + 0.4], c.paper, 0.8)
      if (h > 16 && box.piece >= 0) {
        const text = label(d, box.piece)
        if (g.measure(text) + 10 < box.w) g.text(text, box.x + box.w / 2, box.y + h / 2, '#16181b', 'center')
      }
      if (box.piece === hover && hover >= 0) g.frame(box.x, box.y, box.w, h, c.ink, 1.5)
    }
    phaseBands(g, d, s, at, X, [l.e0, l.e1], l.bottom, c)
    const x = X(at(cursorAt(d, s)))
    g.line([x, f.top, x, l.bottom], c.ink, 1)
  })
  if (l.floor) {
    const text = t('the axis begins at {bytes}', { bytes: mib(l.floor) })
    g.rect(f.left, l.bottom - 19, g.measure(text) + 14, 19, c.paper)
    g.text(text, f.left + 6, l.bottom - 9, c.warn, 'left', true)
  }
  const ticks =
    state.axis === 'time' ? nice(p0 / 1000, p1 / 1000, W / 110) : nice(p0, p1, W / 110).filter(Number.isInteger)
  for (const v of ticks) g.text(count(v), X(state.axis === 'time' ? v * 1000 : v), l.bottom + 34, c.faint, 'center')
  return { boxes: l.boxes, thin: l.merged }
}

function label(d: Device, p: number): string {
  const k = d.kind[p]
  return shown(d.texts[d.kinds.name[k]] || d.texts[d.kinds.module[k]] || about.categories[d.kinds.category[k]].name)
}

/** Odd layers are a little darker, so that layers of one category can be distinguished. */
const oddLayer = (d: Device, p: number) => /(?:^|\.)\d*[13579](?:\.|$)/.test(d.texts[d.kinds.module[d.kind[p]]])
const shade = (color: string, darker: boolean) =>
  darker
    ? '#' +
      [1, 3, 5]
        .map((i) =>
          Math.round(parseInt(color.slice(i, i + 2), 16) * 0.91)
            .toString(16)
            .padStart(2, '0'),
        )
        .join('')
    : color

/** Returns the segments reserved just after an event, in the order of addresses. null means that their events are
    not all known. */
export function segmentsAt(d: Device, event: number): [number, number][] {
  let fixed: [number, number][] = [],
    mapped: [number, number][] = []
  const s = d.segments
  for (let i = 0; i < s.event.length && s.event[i] <= event; i++) {
    const from = s.address[i],
      to = from + s.bytes[i]
    switch (s.action[i]) {
      case 4:
        fixed.push([from, to])
        break
      case 5:
        fixed = fixed.filter((o) => o[0] !== from || o[1] !== to)
        break
      case 6:
        mapped.push([from, to])
        break
      case 7:
        mapped = mapped.flatMap((o): [number, number][] =>
          o[1] <= from || to <= o[0]
            ? [o]
            : [[o[0], from] as [number, number], [to, o[1]] as [number, number]].filter((q) => q[0] < q[1]),
        )
        break
      case 12:
        fixed = []
        mapped = []
        break
    }
  }
  mapped.sort((x, y) => x[0] - y[0])
  const joined: [number, number][] = []
  for (const m of mapped) {
    const before = joined.at(-1)
    if (before && before[1] === m[0]) before[1] = m[1]
    else joined.push([m[0], m[1]])
  }
  return [...fixed, ...joined].sort((x, y) => x[0] - y[0])
}

interface Place {
  from: number
  to: number
  piece: number
} // piece -1: free

/** places returns, by segment, the live blocks and the free pieces between them. */
function places(d: Device, event: number): { segments: Place[][]; reserved: number; free: number; largest: number } {
  const live: Place[] = []
  for (let p = 0; p < d.kind.length; p++) {
    if (d.begin[p] > event || d.end[p] <= event) continue
    const from = d.addresses[d.address[p]]
    live.push({ from, to: from + bytesOf(d, p), piece: p })
  }
  live.sort((x, y) => x.from - y.from)
  let k = 0,
    reserved = 0,
    free = 0,
    largest = 0
  const segments = segmentsAt(d, event).map(([from, to]) => {
    const out: Place[] = []
    let at = from
    const gap = (end: number) => {
      if (end <= at) return
      out.push({ from: at, to: end, piece: -1 })
      free += end - at
      largest = Math.max(largest, end - at)
    }
    while (k < live.length && live[k].from < from) k++
    for (; k < live.length && live[k].from < to; k++) {
      gap(live[k].from)
      out.push(live[k])
      at = live[k].to
    }
    gap(to)
    reserved += to - from
    return out
  })
  return { segments, reserved, free, largest }
}

function drawAddresses(g: Pen, d: Device, event: number, hover: number): Box[] {
  const c = theme(),
    { segments, reserved } = places(d, event),
    boxes: Box[] = []
  if (!reserved) {
    g.text('Nothing says which segments were reserved then.', 20, 30, c.soft)
    return boxes
  }
  const left = 12,
    W = g.width - 24,
    lines = Math.max(8, Math.floor((g.height - 20) / 24)),
    per = reserved / lines
  let at = 0 // bytes so far
  for (const s of segments) {
    const begin = at
    for (const q of s) {
      let n = q.to - q.from
      while (n > 0) {
        const line = Math.floor(at / per + 1e-9),
          room = Math.min(n, (line + 1) * per - at)
        const x = left + ((at - line * per) / per) * W,
          y = 10 + line * 24,
          w = (room / per) * W
        if (q.piece < 0) {
          g.rect(x, y, w, 19, c.sunk)
          if (w > 2) g.frame(x + 0.5, y + 0.5, w - 1, 18, c.edge, 0.6)
        } else {
          const cat = d.kinds.category[d.kind[q.piece]]
          g.rect(x, y, w, 19, about.categories[cat].color, dimmed(about.categories[cat].name) ? 0.3 : 1)
          if (w > 3) g.line([x + w - 0.5, y, x + w - 0.5, y + 19], c.paper, 1)
          if (q.piece === hover) g.frame(x, y, w, 19, c.ink, 2)
        }
        boxes.push({ piece: q.piece, category: -1, x, y, w, h: 19 })
        at += Math.max(room, 1)
        n -= room
        if (room <= 0) break
      }
    }
    const line = Math.floor(begin / per),
      x = left + ((begin - line * per) / per) * W
    g.line([x, 10 + line * 24 - 2, x, 10 + line * 24 + 21], c.ink, 1.4)
  }
  return boxes
}

export function Blocks() {
  const canvas = useRef<HTMLCanvasElement>(null),
    boxes = useRef<Box[]>([])
  const [thin, setThin] = useState(0),
    [hover, setHover] = useState<{ piece: number; x: number; y: number } | null>(null)
  const r = current(),
    at = currentDevice(),
    d = at ? blocks() : null,
    s = d ? seriesFor(d, 'category', false) : null
  const byAddress = state.mode === 'address',
    chosen = hover?.piece ?? -1
  useLayoutEffect(() => {
    if (!canvas.current || !d?.kind.length || !s) return
    const g = canvasPen(canvas.current, chartHeight())
    if (byAddress) boxes.current = drawAddresses(g, d, s.event(cursorAt(d, s)), chosen)
    else {
      const drawn = drawStack(g, d, s, chosen)
      boxes.current = drawn.boxes
      setThin(drawn.thin)
    }
  })
  useEffect(() => {
    if (d && state.from === null && state.mode === '') goTo(state.event ?? peakEvent(d))
  }, [d])
  if (!r || !at)
    return (
      <>
        <LeadWithout run={r?.label ?? ''} peak={r?.row.peak_bytes} />
        <Missing what={`${shown(r?.label ?? '')} has no allocator events.`} />
      </>
    )
  if (!d) return failed ? <Missing what={failed} /> : <Loading />
  if (!s || !d.kind.length) return <NoRoom run={r} />
  const event = s.event(cursorAt(d, s)),
    live: number[] = []
  for (let p = 0; p < d.kind.length; p++) if (d.begin[p] <= event && d.end[p] > event) live.push(p)
  live.sort((x, y) => bytesOf(d, y) - bytesOf(d, x))
  const top = live[0],
    [a, b] = range(s),
    moment = byAddress ? places(d, event) : null
  let inView = 0
  for (let p = 0; p < d.kind.length; p++) if (!d.next[p] && d.begin[p] <= s.event(b) && d.end[p] > s.event(a)) inView++
  const rows = (): Cell[][] => [
    [
      'begin_event',
      'end_event',
      'requested_bytes',
      'block_bytes',
      'category',
      'module',
      'name',
      'holder',
      'line',
      'phase',
      'address',
    ],
    ...Array.from(d.kind, (_, p) => p)
      .filter((p) => d.begin[p] <= s.event(b) && d.end[p] > s.event(a))
      .map((p): Cell[] => {
        const k = d.kind[p]
        return [
          d.begin[p],
          d.end[p] === forever ? null : d.end[p],
          d.kinds.requested[k],
          bytesOf(d, p),
          about.categories[d.kinds.category[k]].name,
          d.texts[d.kinds.module[k]],
          d.texts[d.kinds.name[k]],
          d.texts[d.kinds.holder[k]],
          d.texts[d.kinds.line[k]],
          d.texts[d.kinds.phase[k]],
          '0x' + d.addresses[d.address[p]].toString(16),
        ]
      }),
  ]
  const svg = () => {
    const g = svgPen(canvas.current?.clientWidth ?? 1100, chartHeight(), theme().paper)
    if (byAddress) drawAddresses(g, d, event, -1)
    else drawStack(g, d, s, -1)
    return g.done(`${r.label}: blocks`)
  }
  const place = (e: PointerEvent | WheelEvent | MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect(),
      f = frame()
    return momentAt(d, s, Math.max(0, Math.min(1, (e.clientX - box.left - f.left) / (box.width - f.left - f.right))))
  }
  const over = (e: PointerEvent) => {
    const box = canvas.current!.getBoundingClientRect(),
      x = e.clientX - box.left,
      y = e.clientY - box.top
    const hit = boxes.current.find((q) => x >= q.x && x < q.x + q.w && y >= q.y && y < q.y + q.h)
    setHover(hit && hit.piece >= 0 ? { piece: hit.piece, x, y } : null)
  }
  const axis = byAddress ? {} : pointer(place, (k) => s.event(k), s)
  return (
    <>
      <Lead
        answer={
          live.length === 0
            ? t('nothing is known')
            : t('The largest block at event {event} is {bytes}: {category} of {module}', {
                event: count(event),
                bytes: mib(bytesOf(d, top)),
                category: words(about.categories[d.kinds.category[d.kind[top]]].name),
                module: shown(d.texts[d.kinds.module[d.kind[top]]]) || t('(no module)'),
              })
        }
      >
        {shown(r.label)}: {count(inView)} {t('blocks in view')}.{' '}
        {byAddress
          ? t('Each line continues the one above; a stroke begins a segment; empty pieces are free.')
          : t(
              'Height is size, width is life. Blocks thinner than a pixel are drawn as one of their category; zoom in to split them.',
            )}{' '}
        {d.meta.detail === 'all' ? '' : detailNote(d)}
      </Lead>
      <div class="bar">
        <Seg
          label="Mode"
          value={byAddress ? 'address' : state.mode === 'whole' ? 'whole' : ''}
          pick={(mode) => {
            if (mode === 'whole') set({ mode, from: null, to: null })
            else if (mode === '') goTo(state.event ?? peakEvent(d), { mode })
            else set({ mode })
          }}
          options={[
            ['', t('Around the peak')],
            ['whole', t('Whole')],
            ['address', t('By address')],
          ]}
        />
        <span class="seg">
          <button
            type="button"
            onClick={() => {
              goTo(peakEvent(d))
            }}
          >
            {t('Peak')} <kbd>p</kbd>
          </button>
        </span>
        <Save name={`dpsight-blocks-${r.label}`} svg={svg} rows={rows} />
      </div>
      <div class="split">
        <div>
          {state.table ? (
            <Rows rows={rows()} />
          ) : (
            <div class="panel stage">
              <canvas
                ref={canvas}
                id="blocks"
                tabIndex={0}
                role="img"
                aria-label={`Blocks of ${shown(r.label)}; the list beside it has the largest`}
                {...axis}
                onPointerMove={(e) => {
                  over(e)
                  if (!byAddress) (axis as { onPointerMove?: (e: PointerEvent) => void }).onPointerMove?.(e)
                }}
                onPointerLeave={() => {
                  setHover(null)
                }}
              />
              <div class="hint">
                <span>
                  <kbd>{t('hover')}</kbd> {t('names a block')}
                </span>
                <span>
                  <kbd>Tab</kbd> {t('next block by size')}
                </span>
                {byAddress ? null : (
                  <>
                    <span>
                      <kbd>w</kbd> <kbd>s</kbd> {t('zoom')}
                    </span>
                    <span>
                      <kbd>a</kbd> <kbd>d</kbd> {t('pan')}
                    </span>
                    <span class="sp" />
                    <span data-n="thin">
                      {count(inView)} {t('blocks in view')}, {t('{n} thinner than a pixel', { n: count(thin) })}
                    </span>
                  </>
                )}
              </div>
              {hover ? (
                <div
                  class="card"
                  style={{
                    left: px(Math.max(4, Math.min(hover.x + 14, (canvas.current?.clientWidth ?? 600) - 330))),
                    top: px(Math.min(hover.y + 14, chartHeight() - 190)),
                  }}
                >
                  <Card d={d} p={hover.piece} />
                </div>
              ) : null}
            </div>
          )}
        </div>
        <aside class="stack">
          <div class="panel pad">
            <h2>
              {t('Largest at the cursor')}{' '}
              <small>
                {t('event')} {count(event)}
              </small>
            </h2>
            <div class="list">
              {live.slice(0, 14).map((p) => (
                <>
                  <Swatch color={about.categories[d.kinds.category[d.kind[p]]].color} />
                  <button
                    type="button"
                    class="nm mono"
                    title={label(d, p)}
                    onClick={() => {
                      setHover({ piece: p, x: 90, y: 40 })
                    }}
                    onFocus={() => {
                      setHover({ piece: p, x: 90, y: 40 })
                    }}
                    onBlur={() => {
                      setHover(null)
                    }}
                  >
                    {label(d, p)}
                  </button>
                  <span class="num">{mib(bytesOf(d, p))}</span>
                  <span class="pc" />
                </>
              ))}
            </div>
          </div>
          {moment ? (
            <div class="panel pad">
              <h2>{t('Free pieces')}</h2>
              <dl class="kv">
                <dt>{t('reserved')}</dt>
                <dd data-n="reserved">{mib(moment.reserved)}</dd>
                <dt>{t('Free pieces')}</dt>
                <dd data-n="free">{mib(moment.free)}</dd>
                <dt>{t('largest')}</dt>
                <dd>{mib(moment.largest)}</dd>
                <dt>{t('segments')}</dt>
                <dd>{count(moment.segments.length)}</dd>
              </dl>
            </div>
          ) : (
            <div class="panel pad">
              <h2>{t('Free pieces')}</h2>
              <p>
                {t('{cached} of {reserved} reserved are cached.', {
                  cached: mib((levelAt(d.reserved.event, d.reserved.bytes, event) ?? 0) - s.total[cursorAt(d, s)]),
                  reserved: mib(levelAt(d.reserved.event, d.reserved.bytes, event)),
                })}{' '}
                <button
                  type="button"
                  class="btn"
                  onClick={() => {
                    set({ mode: 'address' })
                  }}
                >
                  {t('By address')}
                </button>
              </p>
            </div>
          )}
        </aside>
      </div>
    </>
  )
}

const px = (n: number) => `${n}px`

function Card(p: { d: Device; p: number }) {
  const { d } = p,
    k = d.kind[p.p],
    evidence = t(['tagged', 'by lifetime', 'by stack', 'by phase'][d.kinds.evidence[k]] ?? '—')
  const born = phaseAt(d, d.begin[p.p]),
    text = (v: number) => shown(d.texts[v]) || '—'
  return (
    <>
      <h3>
        <Swatch color={about.categories[d.kinds.category[k]].color} /> {mib(bytesOf(d, p.p))}
      </h3>
      <dl class="kv">
        <dt>{t('Category').toLowerCase()}</dt>
        <dd>
          {words(about.categories[d.kinds.category[k]].name)} ({evidence})
        </dd>
        <dt>{t('module')}</dt>
        <dd class="mono">{text(d.kinds.module[k])}</dd>
        <dt>{t('tensor')}</dt>
        <dd class="mono">{text(d.kinds.name[k])}</dd>
        <dt>{t('held by')}</dt>
        <dd class="mono">{d.kinds.holder.some(Boolean) ? text(d.kinds.holder[k]) : t('not looked for')}</dd>
        <dt>{t('asked for by')}</dt>
        <dd class="mono">
          {d.texts[d.kinds.line[k]] || d.kinds.line.some(Boolean) ? text(d.kinds.line[k]) : t('not recorded')}
          {d.sources[d.kinds.line[k]] ? (
            <>
              <br />
              {shown(d.sources[d.kinds.line[k]])}
            </>
          ) : null}
        </dd>
        <dt>{t('life')}</dt>
        <dd>
          {t('event')} {count(d.begin[p.p])} → {d.end[p.p] === forever ? '…' : count(d.end[p.p])}
        </dd>
        <dt>{t('born in')}</dt>
        <dd>
          {text(d.kinds.phase[k])}
          {born >= 0 && d.phases.step[born] >= 0 ? `, ${t('Step').toLowerCase()} ${d.phases.step[born]}` : ''}
        </dd>
      </dl>
    </>
  )
}
