import { useRef } from 'preact/hooks'
import { cardOf } from '../cards'
import { count, GiB, mib, ms, shown, signedMib, times } from '../format'
import { t } from '../i18n'
import { about, baseline, current, runs, selected, toggle, type Run } from '../model'
import type { Cell } from '../pen'
import { set, state } from '../state'
import { Lead, Rows, Save, textOf, useWidth } from '../ui'

type Column = [string, string, (r: Run) => string | number | null]

const peak = (r: Run) => r.row.peak_bytes
const over = (r: Run) =>
  peak(r) === null || baseline()?.row.peak_bytes == null ? null : peak(r)! - baseline()!.row.peak_bytes!
const ratio = (r: Run) => (r.row.step_ms && baseline()?.row.step_ms ? r.row.step_ms / baseline()!.row.step_ms! : null)
const shortGPU = (r: Run) => (r.row.gpu ?? r.row.profile ?? '').replace(/^NVIDIA /, '')

/** Returns the shortened revision of the script's repository. A plus sign means uncommitted changes. */
const revision = (r: Run) => about.revisions[r.id]?.replace(/^([0-9a-f]{9})[0-9a-f]+/, '$1') ?? null

const columns: Column[] = [
  ['name', 'Run', (r) => r.label],
  ['status', 'Status', (r) => r.row.status],
  ['peak', 'Peak allocated', peak],
  ['over', 'vs', over],
  ['step', 'Step', (r) => r.row.step_ms],
  ['ratio', '×', ratio],
  ['gpu', 'GPU', shortGPU],
  ['revision', 'Revision', revision],
  ['started', 'Started', (r) => r.row.started],
]

/** facts returns a run's facts, which a query can name as name=value. */
const facts = (r: Run): [string, string][] =>
  [
    ['status', r.row.status],
    ['source', r.row.source],
    ['suite', r.row.suite ?? ''],
    ['gpu', shortGPU(r)],
    ...Object.entries(r.row.params).map(([k, v]) => [k, String(v)]),
  ]
    .filter(([, v]) => v !== '')
    .map(([k, v]) => [k, `${k}=${v}`.replace(/\s+/g, '_').toLowerCase()])

/** Reports whether a run matches each word of a query. A word name=value must equal a fact. Any other word must be a
    part of a name or a value. */
function matches(r: Run, query: string): boolean {
  const of = facts(r).map((f) => f[1]),
    text = [r.label, r.id, ...of].join(' ').toLowerCase()
  return wordsOf(query).every((w) => of.includes(w) || (!w.includes('=') && text.includes(w)))
}
const wordsOf = (query: string) => query.toLowerCase().split(/\s+/).filter(Boolean)

const mostChips = 6 // the most values of a fact that has chips: for facts with more values, there is the search field

/** chips returns the facts that divide the runs into a few groups. */
function chips(list: Run[]): string[] {
  const values = new Map<string, Set<string>>()
  for (const r of list)
    for (const [k, v] of facts(r)) if (chipped.includes(k)) values.set(k, (values.get(k) ?? new Set()).add(v))
  return chipped.flatMap((k) => {
    const of = [...(values.get(k) ?? [])]
    return of.length > 1 && of.length <= mostChips ? of.sort() : []
  })
}
const chipped = ['status', 'source', 'suite', 'gpu', 'method']

export function statusTag(r: Run) {
  const tags = []
  if (r.row.source === 'predicted') tags.push(<span class="tag dash">◇ {t('predicted')}</span>)
  if (r.row.source === 'imported') tags.push(<span class="tag dash">◈ imported</span>)
  if (r.row.status === 'ok') tags.push(<span class="tag ok">✓ ok</span>)
  else if (r.row.status === 'running') tags.push(<span class="tag">● running</span>)
  else tags.push(<span class="tag bad">✕ {r.row.status === 'oom' ? t('out of memory') : shown(r.row.status)}</span>)
  return tags
}

export function Runs() {
  const svg = useRef<SVGSVGElement>(null)
  const [by, down] = [state.sort.replace('-', ''), state.sort.startsWith('-')]
  const of = columns.find((c) => c[0] === by)?.[2] ?? peak
  const list = runs
    .filter((r) => matches(r, `${state.query} ${state.only}`))
    .sort((a, b) => {
      const x = of(a),
        y = of(b)
      if (x === y) return 0
      if (x === null) return 1
      if (y === null) return -1
      return (x < y ? -1 : 1) * (down ? -1 : 1)
    })
  const revised = runs.some((r) => revision(r) !== null),
    shownColumns = columns.filter((c) => c[0] !== 'revision' || revised)
  const base = baseline(),
    chosen = new Set(selected().map((r) => r.id)),
    most = Math.max(1, ...runs.map((r) => Math.max(r.row.peak_bytes ?? 0, r.row.peak_reserved_bytes ?? 0)))
  const isPrivate = (r: Run) =>
    !['vanilla', 'norm_only'].includes(typeof r.row.params.method === 'string' ? r.row.params.method : 'vanilla')
  const good = runs.filter((r) => r.row.status === 'ok' && r.row.peak_bytes !== null)
  const timed = good
    .filter((r) => r.row.step_ms !== null && isPrivate(r) && r.row.params.bare !== true)
    .sort((a, b) => a.row.step_ms! - b.row.step_ms!)
    .at(0)
  const cheapest = good
    .slice()
    .sort((a, b) => a.row.peak_bytes! - b.row.peak_bytes!)
    .at(0)
  const answer = timed
    ? t('The fastest private run is {run}: {ms} a step, peak {peak}', {
        run: shown(timed.label),
        ms: ms(timed.row.step_ms),
        peak: mib(timed.row.peak_bytes),
      })
    : cheapest
      ? t(good.length > 1 ? 'The cheapest run is {run}: peak {peak}' : '{run}: peak {peak}', {
          run: shown(cheapest.label),
          peak: mib(cheapest.row.peak_bytes),
        })
      : t('nothing is known')
  const full = list.filter((r) => r.row.params.bare !== true),
    drawn = full.length ? full : list,
    curve = variedIn(drawn),
    predicted = runs.every((r) => r.row.source === 'predicted'),
    withTimes = drawn.some((r) => r.row.step_ms !== null)
  const gpus = [...new Set(runs.map(shortGPU).filter(Boolean))],
    suites = [...new Set(runs.map((r) => r.row.suite).filter(Boolean))]
  const rows = (): Cell[][] => [
    [
      'run',
      'run_id',
      'status',
      'source',
      'peak_bytes',
      'peak_delta_bytes',
      'step_ms',
      'step_ratio',
      'gpu',
      'revision',
      'started',
    ],
    ...list.map((r): Cell[] => [
      r.label,
      r.id,
      r.row.status,
      r.row.source,
      peak(r),
      over(r),
      r.row.step_ms,
      ratio(r),
      shortGPU(r),
      revision(r),
      r.row.started,
    ]),
  ]
  return (
    <>
      <Lead answer={answer}>
        {runs.length === 1 ? t('1 run') : t('{n} runs', { n: count(runs.length) })}
        {suites.length ? t(' of {suites}', { suites: suites.map((s) => shown(s!)).join(', ') }) : ''}
        {gpus.length ? t(predicted ? ' predicted for {gpus}' : ' on {gpus}', { gpus: gpus.map(shown).join(', ') }) : ''}
        {t('. A click on a name opens the run; boxes select what the breakdown compares.')}
      </Lead>
      <Ask />
      <div class="bar">
        {chips(runs).map((word) => {
          const on = wordsOf(state.only).includes(word)
          return (
            <button
              key={word}
              type="button"
              class="tag chip"
              aria-pressed={on}
              translate={false}
              onClick={() => {
                const others = wordsOf(state.only).filter((w) => w !== word)
                set({ only: (on ? others : [...others, word]).join(' ') })
              }}
            >
              {shown(word)}
            </button>
          )
        })}
        {state.query ? (
          <button
            type="button"
            class="ib"
            onClick={() => {
              set({ query: '' })
            }}
          >
            {shown(state.query)} ×
          </button>
        ) : null}
        {state.query || state.only ? (
          <span class="cap" data-n="found">
            {t('{n} of {all} runs', { n: count(list.length), all: count(runs.length) })}
          </span>
        ) : null}
        <span class="cap">
          {count(chosen.size)} {t('selected')}
        </span>
        <Save name="dpsight-runs" svg={() => textOf(svg.current, 'dpsight runs')} rows={rows} />
      </div>
      {state.table ? (
        <Rows rows={rows()} />
      ) : (
        <div class="runsgrid">
          <div class="panel heatwrap" tabIndex={0} role="region" aria-label={t('Runs')}>
            <table class="rt">
              <thead>
                <tr>
                  <th>
                    <span class="skip">{t('selected')}</span>
                  </th>
                  {shownColumns.map(([key, title]) => (
                    <th
                      key={key}
                      class={['peak', 'over', 'step', 'ratio'].includes(key) ? 'num' : ''}
                      aria-sort={key === by ? (down ? 'descending' : 'ascending') : 'none'}
                    >
                      <button
                        type="button"
                        class="th"
                        onClick={() => {
                          set({ sort: key === by && !down ? '-' + key : key })
                        }}
                      >
                        {key === 'over' ? t('vs {base}', { base: shown(base?.label ?? '—') }) : t(title)}
                        {key === by ? (down ? ' ↓' : ' ↑') : ''}
                      </button>
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {list.map((r) => {
                  const d = over(r)
                  return (
                    <tr key={r.id} data-run={r.id} class={r.id === current()?.id ? 'on' : ''}>
                      <td>
                        <input
                          type="checkbox"
                          aria-label={`select ${shown(r.label)}`}
                          checked={chosen.has(r.id)}
                          onChange={() => {
                            toggle(r)
                          }}
                        />
                      </td>
                      <td class="runname">
                        <button
                          type="button"
                          class="plain"
                          onClick={() => {
                            set({ run: r.label, view: 'breakdown', device: '' })
                          }}
                        >
                          <b>{shown(r.label)}</b>
                        </button>
                        {r.id === base?.id ? (
                          <span class="tag">{t('baseline')}</span>
                        ) : r.main ? (
                          <button
                            type="button"
                            class="tag hov"
                            onClick={() => {
                              set({ base: r.label })
                            }}
                          >
                            {t('make baseline')}
                          </button>
                        ) : null}
                        {r.row.params.bare === true ? <span class="tag">bare</span> : null}
                      </td>
                      <td>{statusTag(r)}</td>
                      <td class="num wide">
                        <span data-n="peak">
                          {r.row.peak_low_bytes === undefined ? '' : '≥ '}
                          {mib(r.row.peak_bytes)}
                        </span>
                        {r.row.peak_bytes ? (
                          <div class="spark">
                            <i
                              class={r.row.source === 'predicted' ? 'hatch' : ''}
                              style={{ width: `${(r.row.peak_bytes / most) * 100}%` }}
                            />
                            {r.row.peak_reserved_bytes ? (
                              <b
                                style={{ left: `${(r.row.peak_reserved_bytes / most) * 100}%` }}
                                title={`peak reserved ${mib(r.row.peak_reserved_bytes)}`}
                              />
                            ) : null}
                          </div>
                        ) : null}
                      </td>
                      <td class="num opt">
                        {r.id === base?.id || d === null ? (
                          '—'
                        ) : d === 0 ? (
                          t('equal')
                        ) : (
                          <span class={d > 0 ? 'more' : 'less'}>{signedMib(d)}</span>
                        )}
                      </td>
                      <td class="num">
                        <span data-n="step">{ms(r.row.step_ms)}</span>
                      </td>
                      <td class="num opt">
                        {r.id === base?.id || ratio(r) === null ? (
                          '—'
                        ) : (
                          <span class={times(ratio(r)!) === times(1) ? '' : ratio(r)! > 1 ? 'more' : 'less'}>
                            {times(ratio(r)!)}
                          </span>
                        )}
                      </td>
                      <td class="opt">{shown(shortGPU(r)) || '—'}</td>
                      {revised ? <td class="opt mono">{shown(revision(r) ?? '—')}</td> : null}
                      <td class="opt">{r.row.started?.replace('T', ' ').slice(0, 16) ?? '—'}</td>
                    </tr>
                  )
                })}
              </tbody>
            </table>
          </div>
          <aside class="stack">
            {withTimes || !curve ? (
              <div class="panel pad">
                <h2>
                  {t('Memory against time')} <small>{t('lower left is better')}</small>
                </h2>
                <Scatter list={drawn} chosen={chosen} svg={svg} x={(r) => r.row.step_ms} />
              </div>
            ) : null}
            {curve ? (
              <div class="panel pad" id="curve">
                <h2>
                  <span>
                    {t('Peak against')} <span class="mono">{shown(curve)}</span>
                  </span>
                </h2>
                <Scatter list={drawn} chosen={chosen} svg={withTimes ? null : svg} x={valueOf(curve)} curve={curve} />
              </div>
            ) : null}
          </aside>
        </div>
      )}
    </>
  )
}

/** Ask links questions that readers have to the views that answer them. */
function Ask() {
  const r = current(),
    base = baseline()
  if (!r?.main) return null
  const who = { run: shown(r.label), base: shown(base?.label ?? '') },
    other = base?.main && base !== r
  const questions: [string, Partial<typeof state>][] = [
    ['Does {run} fit a card?', { view: 'breakdown', mode: '' }],
    ['What grew between two steps?', { view: 'timeline', mode: '' }],
    ['Which module holds the peak?', { view: 'modules', mode: '', event: null }],
    ['Which line made which block?', { view: 'blocks', mode: '' }],
    ...((other
      ? [
          ['Why does {run} need more than {base}?', { view: 'compare', mode: 'memory' }],
          ...(r.row.step_ms !== null && base.row.step_ms !== null
            ? [['Why is {run} slower than {base}?', { view: 'compare', mode: 'time' }]]
            : []),
        ]
      : []) as [string, Partial<typeof state>][]),
    ['What can be saved?', { view: 'findings', mode: '' }],
  ]
  return (
    <p class="ask">
      {questions.map(([text, patch]) => (
        <button
          key={text}
          type="button"
          class="ib"
          onClick={() => {
            set(patch)
          }}
        >
          {t(text, who)}
        </button>
      ))}
    </p>
  )
}

/** methodOf returns the name of the curve to which a run belongs. Predicted and measured runs are never on one
    curve. */
const methodOf = (r: Run) =>
  (typeof r.row.params.method === 'string' ? r.row.params.method : r.row.name.replace(/\d+/g, '*')) +
  (r.row.source === 'predicted' ? ` (${t('predicted')})` : '')

const valueOf = (key: string) => (r: Run) => {
  const v = r.row.params[key]
  return typeof v === 'number' ? v : null
}

const fewest = 2 // fewest values for a curve

/** variedIn returns the parameter with the most different values among the runs, if there are enough for a curve. */
function variedIn(list: Run[]): string | null {
  const keys = [...new Set(list.flatMap((r) => Object.keys(r.row.params)))].filter((k) => k !== 'seed')
  const values = (k: string) => new Set(list.map(valueOf(k)).filter((v) => v !== null)).size
  const best = keys.map((k) => ({ k, n: values(k) })).sort((a, b) => b.n - a.n)
  return best.length && best[0].n >= fewest ? best[0].k : null
}

/** Scatter draws peaks against step times or against a parameter. A curve joins the runs of one method, either
    measured or predicted. */
function Scatter(p: {
  list: Run[]
  chosen: Set<string>
  svg: { current: SVGSVGElement | null } | null
  x: (r: Run) => number | null
  curve?: string
}) {
  const [ref, width] = useWidth()
  const byTime = p.curve === undefined
  const list = p.list.filter((r) => p.x(r) !== null && r.row.peak_bytes !== null)
  if (!list.length) return <p class="muted">{t('No run has both a peak and a step time.')}</p>
  const W = Math.max(240, width),
    H = 330,
    l = 58,
    b = 38,
    top = 14
  const xs = list.map((r) => p.x(r)!),
    ys = list.map((r) => r.row.peak_bytes!)
  const x1 = Math.max(...xs) * 1.12 || 1,
    spread = Math.max(...ys) - Math.min(...ys) || Math.max(...ys) * 0.1
  const y0 = Math.max(0, Math.min(...ys) - spread * 0.2),
    limit = p.curve ? cardOf(state.limit).bytes : 0,
    reached = limit > y0 && limit < Math.max(...ys) * 2,
    y1 = Math.max(...ys, reached ? limit : 0) + spread * 0.15
  const curves = new Map<string, Run[]>()
  for (const r of p.curve ? list : []) {
    const name = methodOf(r)
    curves.set(name, [...(curves.get(name) ?? []), r])
  }
  for (const runs of curves.values()) runs.sort((a, b) => p.x(a)! - p.x(b)!)
  const X = (v: number) => l + (v / x1) * (W - l - 12),
    Y = (v: number) => top + (1 - (v - y0) / (y1 - y0)) * (H - b - top)
  const ticks = nice(y0 / GiB, y1 / GiB, 6),
    along = nice(0, x1, 4)
  return (
    <div ref={ref}>
      <svg
        ref={(e) => {
          if (p.svg) p.svg.current = e
        }}
        viewBox={`0 0 ${W} ${H}`}
        width="100%"
        role="img"
        aria-label={`Peak memory against ${p.curve ?? 'step time'} of ${list.length} runs`}
      >
        {ticks.map((g) => (
          <g key={g}>
            <line x1={l} x2={W} y1={Y(g * GiB)} y2={Y(g * GiB)} stroke="var(--line)" />
            <text x={l - 7} y={Y(g * GiB) + 4} text-anchor="end" fill="var(--faint)">
              {g} GiB
            </text>
          </g>
        ))}
        {along.map((v) => (
          <text key={v} x={X(v)} y={H - b + 18} text-anchor="middle" fill="var(--faint)">
            {byTime ? (x1 > 4000 ? `${v / 1000} s` : `${v} ms`) : v}
          </text>
        ))}
        {byTime ? null : (
          <text x={W - 4} y={H - 4} text-anchor="end" fill="var(--faint)">
            {shown(p.curve!)}
          </text>
        )}
        {[...curves].map(([name, runs]) => (
          <polyline
            key={name}
            points={runs.map((r) => `${X(p.x(r)!)},${Y(r.row.peak_bytes!)}`).join(' ')}
            fill="none"
            stroke="var(--edge)"
            stroke-width={1.4}
            stroke-dasharray={runs.some((r) => r.row.source === 'predicted') ? '4 3' : undefined}
          />
        ))}
        {list.map((r) => (
          <g key={r.id}>
            <circle
              cx={X(p.x(r)!)}
              cy={Y(r.row.peak_bytes!)}
              r={5.5}
              stroke="var(--ink)"
              stroke-width={1.5}
              stroke-dasharray={r.row.source === 'predicted' ? '2 2' : undefined}
              fill={p.chosen.has(r.id) ? 'var(--ink)' : 'var(--surface)'}
            >
              <title>{shown(r.label)}</title>
            </circle>
          </g>
        ))}
        {reached ? (
          <g>
            <line x1={l} x2={W} y1={Y(limit)} y2={Y(limit)} stroke="var(--bad)" />
            <text x={W - 4} y={Y(limit) - 5} text-anchor="end" fill="var(--bad)">
              {cardOf(state.limit).title}
            </text>
          </g>
        ) : null}
        {placed(
          p.curve
            ? [...curves].map(([name, runs]) => {
                const r = runs[runs.length - 1]
                return { r, x: X(p.x(r)!), y: Y(r.row.peak_bytes!), text: shown(name).slice(0, 24) }
              })
            : list.map((r) => ({ r, x: X(p.x(r)!), y: Y(r.row.peak_bytes!), text: shown(r.label).slice(0, 24) })),
          W,
        ).map((q) => (
          <text
            key={q.r.id}
            x={q.x}
            y={q.y}
            text-anchor={q.end ? 'end' : 'start'}
            font-weight={q.r.id === current()?.id ? 680 : 450}
          >
            {q.text}
          </text>
        ))}
      </svg>
    </div>
  )
}

/** Places labels beside their points. A label that would overlap another is left out, since the list has it. */
function placed<T extends { x: number; y: number; text: string }>(all: T[], width: number) {
  const taken: [number, number, number, number][] = all.map((p) => [p.x - 7, p.y - 7, p.x + 7, p.y + 7])
  const out: (T & { end: boolean })[] = []
  for (const p of all) {
    const w = p.text.length * 6.8
    for (const [dx, dy, end] of [
      [9, 4, false],
      [-9, 4, true],
      [6, -10, false],
      [-6, -10, true],
      [6, 19, false],
      [-6, 19, true],
    ] as const) {
      const x = p.x + dx,
        y = p.y + dy,
        box: [number, number, number, number] = end ? [x - w, y - 10, x, y + 3] : [x, y - 10, x + w, y + 3]
      if (box[0] < 58 || box[2] > width) continue
      if (taken.some((o) => o[0] < box[2] && o[2] > box[0] && o[1] < box[3] && o[3] > box[1])) continue
      taken.push(box)
      out.push({ ...p, x, y, end })
      break
    }
  }
  return out
}

/** Returns the marks of an axis of bytes, at powers of two. */
export function binary(to: number, most: number): number[] {
  let step = 2 ** Math.ceil(Math.log2(to / most || 1))
  if (!Number.isFinite(step)) step = 1
  return Array.from({ length: Math.floor(to / step) + 1 }, (_, i) => i * step)
}

export function nice(from: number, to: number, most: number): number[] {
  const rough = (to - from) / most || 1,
    base = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 5, 10].map((k) => k * base).find((s) => s >= rough) ?? rough
  const out: number[] = []
  for (let v = Math.ceil(from / step) * step; v <= to + step * 1e-9; v += step) out.push(Number(v.toPrecision(12)))
  return out
}
