import { useRef } from 'preact/hooks'
import { cardOf, cards, type Card as CardOf } from '../cards'
import type { LadderRun } from '../data'
import { count, mib, mibs, percent, shown, signedMib, signedMibs } from '../format'
import { category as words, t } from '../i18n'
import { about, baseline, blocks, colorOf, current, docs, peakEvent, selected, type Run } from '../model'
import { fontSize, inkOn, widthOf, type Cell } from '../pen'
import { folded } from '../series'
import { set, state } from '../state'
import {
  categoryRows,
  Composition,
  dimmed,
  Lead,
  LeadWithout,
  Loading,
  Missing,
  pickCategory,
  Pick,
  Rows,
  Save,
  Seg,
  Swatch,
  textOf,
  useWidth,
} from '../ui'

const limits: [string, string][] = cards.map((c) => [c.name, c.title])

const bytesOf = (r: Run | undefined, c: string) => r?.main?.categories.find((q) => q.category === c)?.bytes ?? 0

/** Returns the device memory used outside torch's reserved: the CUDA context and the driver, as in the ladder. null
    if unknown. */
function outside(r: Run): number | null {
  const run = docs.ladder?.runs.find((l) => l.run_id === r.id)
  for (const g of run?.gpus ?? []) {
    for (const m of g.moments) {
      const get = (name: string) => m.rungs.find((q) => q.rung === name)?.bytes ?? 0
      if (m.rungs.length) return get('context+modules+non_torch') + get('driver')
    }
  }
  return null
}

export function Breakdown() {
  const svg = useRef<SVGSVGElement>(null)
  const r = current(),
    base = baseline()
  if (!r?.main)
    return (
      <>
        <LeadWithout run={r?.label ?? ''} peak={r?.row.peak_bytes} />
        <Missing
          what={
            docs.breakdown
              ? `${shown(r?.label ?? '')} has no allocator events to break down.`
              : (about.missing.breakdown ?? '')
          }
        />
      </>
    )
  const main = r.main,
    list = selected().filter((s) => s.main)
  if (!list.includes(r)) list.push(r)
  const top = main.categories.slice().sort((a, b) => b.bytes - a.bytes)[0]
  const over = base?.main && base !== r ? main.allocated_bytes - base.main.allocated_bytes : null
  const need = (main.peak_reserved_bytes ?? main.allocated_bytes) + (outside(r) ?? 0),
    card = cardOf(state.limit),
    limit = card.bytes
  const cats = about.categories.map((c) => c.name).filter((c) => list.some((s) => bytesOf(s, c) > 0))
  const rows = (): Cell[][] => [
    ['run', 'category', 'bytes', 'delta_bytes'],
    ...list.flatMap((s) => cats.map((c): Cell[] => [s.label, c, bytesOf(s, c), bytesOf(s, c) - bytesOf(base, c)])),
  ]
  const overhead = state.mode === 'overhead' && base?.main
  return (
    <>
      <Lead
        answer={t('{run} peaks at {peak}; {share} of it is {category}', {
          run: shown(r.label),
          peak: mib(main.allocated_bytes),
          share: percent(top.bytes, main.allocated_bytes),
          category: words(top.category),
        })}
      >
        {main.at.phase ? (
          <>
            {t('In')} <b>{shown(main.at.phase)}</b>
            {main.at.step === null ? '' : t(' of step {n}', { n: String(main.at.step) })},{' '}
          </>
        ) : null}
        {t('event')} {count(main.at.event)}.{' '}
        {over === null
          ? ''
          : t('{delta} ({share}) against {base}. ', {
              delta: signedMib(over),
              share: percent(over, base!.main!.allocated_bytes),
              base: shown(base!.label),
            })}
        <b class={need < limit ? 'less' : 'more'}>{need < limit ? t('fits') : t('does not fit')}</b> {card.title}:{' '}
        {mib(Math.abs(limit - need))} {need < limit ? t('to spare') : t('too much')} (
        {outside(r) === null
          ? t('peak reserved {bytes}, the context not counted', { bytes: mib(main.peak_reserved_bytes) })
          : t('peak reserved {bytes} + context {context}', {
              bytes: mib(main.peak_reserved_bytes),
              context: mib(outside(r)),
            })}
        ).
      </Lead>
      <div class="bar">
        <Seg
          label="Mode"
          value={overhead ? 'overhead' : 'composition'}
          pick={(m) => {
            set({ mode: m })
          }}
          options={[
            ['composition', t('Composition')],
            ['overhead', `${t('Overhead')}: ${shown(base?.label ?? '—')}`],
          ]}
        />
        <Pick
          label={t('Fits in')}
          value={state.limit}
          options={limits}
          pick={(limit) => {
            set({ limit })
          }}
        />
        <Save
          name={`dpsight-breakdown-${r.label}`}
          svg={() => textOf(svg.current, `Peak memory by category`)}
          rows={rows}
        />
      </div>
      {state.table ? (
        <Rows rows={rows()} />
      ) : (
        <div class="split">
          <div class="stack">
            <div class="panel pad">
              <Bars list={list} cats={cats} overhead={Boolean(overhead)} svg={svg} card={card} />
            </div>
            {base?.main ? <Overhead list={list} base={base} cats={cats} /> : null}
            <Ladder r={r} />
            <Ranks r={r} />
          </div>
          <aside class="panel pad">
            <h2>
              <span translate={false}>{shown(r.label)}</span> <small>{t('click a category')}</small>
            </h2>
            <Composition rows={categoryRows(main.categories)} total={main.allocated_bytes} pick={pickCategory} />
            <hr />
            <Fits need={need} />
            <hr />
            <Drill r={r} category={state.category ?? top.category} />
          </aside>
        </div>
      )}
    </>
  )
}

function Bars(p: {
  list: Run[]
  cats: string[]
  overhead: boolean
  svg: { current: SVGSVGElement | null }
  card: CardOf
}) {
  const [ref, W] = useWidth(),
    base = baseline(),
    narrow = W < 640
  const left = narrow ? 0 : 118,
    right = narrow ? 0 : 132,
    step = narrow ? 62 : 50,
    H = p.list.length * step + 30
  const parts = p.list.map((r) => {
    const of = p.cats.map((c) => ({ c, b: bytesOf(r, c) - (p.overhead ? bytesOf(base, c) : 0) })).filter((q) => q.b)
    return { r, up: of.filter((q) => q.b > 0), down: of.filter((q) => q.b < 0) }
  })
  const sum = (list: { b: number }[]) => list.reduce((a, q) => a + q.b, 0)
  const largest = Math.max(
    1,
    ...parts.map((q) => Math.max(sum(q.up), p.overhead ? 0 : (q.r.main?.peak_reserved_bytes ?? 0))),
  )
  // The picture includes a card that is not much larger than the memory needed.
  const near = !p.overhead && p.card.bytes < largest * 1.4,
    high = near ? Math.max(largest, p.card.bytes) : largest
  const low = Math.min(0, ...parts.map((q) => sum(q.down)))
  const inside = W - left - right,
    X = (v: number) => left + ((v - low) / (high * 1.02 - low)) * inside
  return (
    <div ref={ref}>
      {W === 0 ? null : (
        <svg
          ref={(e) => {
            p.svg.current = e
          }}
          viewBox={`0 0 ${W} ${H}`}
          width={W}
          height={H}
          role="img"
          aria-label={`Peak memory of ${p.list.length} runs by category; the table beneath has the numbers`}
        >
          <defs>
            <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
              <path d="M0 0V6" stroke="var(--surface)" stroke-width="2.4" />
            </pattern>
          </defs>
          {parts.map(({ r, up, down }, i) => {
            const y = 22 + i * step,
              bar = narrow ? y + 20 : y,
              total = r.main!.allocated_bytes
            let x = 0,
              back = 0
            const delta = base?.main ? total - base.main.allocated_bytes : 0
            const draw = (q: { c: string; b: number }) => {
              const from = q.b > 0 ? x : back + q.b,
                to = q.b > 0 ? x + q.b : back
              if (q.b > 0) x += q.b
              else back += q.b
              const w = X(to) - X(from),
                label = words(q.c)
              return (
                <g
                  key={q.c}
                  opacity={dimmed(q.c) ? 0.25 : 1}
                  class="hov"
                  onClick={() => {
                    set({ run: r.label, device: '' })
                    pickCategory(q.c)
                  }}
                >
                  <rect
                    x={X(from)}
                    y={bar}
                    width={w}
                    height={34}
                    fill={colorOf(q.c)}
                    stroke="var(--edge)"
                    stroke-width={0.6}
                    data-c={q.c}
                  >
                    <title>{`${label} ${p.overhead ? signedMib(q.b) : mib(q.b)}`}</title>
                  </rect>
                  {w > widthOf(label) * (fontSize() / 12) + 10 ? (
                    <text
                      x={X(from) + w / 2}
                      y={bar + 21}
                      text-anchor="middle"
                      fill={inkOn(colorOf(q.c))}
                      pointer-events="none"
                    >
                      {label}
                    </text>
                  ) : null}
                </g>
              )
            }
            return (
              <g key={r.id}>
                <text
                  x={0}
                  y={narrow ? y + 12 : y + 15}
                  font-weight={650}
                  class="hov"
                  onClick={() => {
                    set({ run: r.label, device: '' })
                  }}
                >
                  {shown(r.label).slice(0, narrow ? 26 : 16)}
                </text>
                {narrow ? null : (
                  <text x={0} y={y + 31} fill="var(--faint)">
                    {shown(r.main!.at.phase ?? '').slice(0, 17)}
                  </text>
                )}
                {up.map(draw)}
                {down.map(draw)}
                {r.row.source === 'predicted' ? (
                  <rect
                    x={X(0)}
                    y={bar}
                    width={X(x) - X(0)}
                    height={34}
                    fill="url(#hatch)"
                    opacity={0.6}
                    pointer-events="none"
                  />
                ) : null}
                {!p.overhead && r.main!.peak_reserved_bytes ? (
                  <rect
                    x={X(0)}
                    y={bar + 36}
                    width={X(r.main!.peak_reserved_bytes) - X(0)}
                    height={2}
                    fill="var(--edge)"
                  />
                ) : null}
                <text x={W} y={narrow ? y + 12 : y + 15} text-anchor="end" font-weight={650}>
                  {mib(total)}
                </text>
                {r === base ? (
                  narrow ? null : (
                    <text x={W} y={y + 31} text-anchor="end" fill="var(--faint)">
                      {t('baseline')}
                    </text>
                  )
                ) : narrow ? null : (
                  <text x={W} y={y + 31} text-anchor="end" fill={delta > 0 ? 'var(--bad)' : 'var(--good)'}>
                    {signedMib(delta)}
                  </text>
                )}
              </g>
            )
          })}
          {base?.main ? (
            <line
              x1={X(p.overhead ? 0 : base.main.allocated_bytes)}
              x2={X(p.overhead ? 0 : base.main.allocated_bytes)}
              y1={14}
              y2={H - 8}
              stroke="var(--ink)"
              stroke-dasharray={p.overhead ? '' : '4 3'}
              stroke-width={1.4}
            />
          ) : null}
          {base?.main && !p.overhead ? (
            <text x={X(base.main.allocated_bytes)} y={10} text-anchor="end" fill="var(--faint)">
              {shown(base.label).slice(0, 24)}
            </text>
          ) : null}
          {near ? (
            <>
              <line x1={X(p.card.bytes)} x2={X(p.card.bytes)} y1={14} y2={H - 8} stroke="var(--bad)" />
              <text x={X(p.card.bytes)} y={10} text-anchor={narrow ? 'end' : 'middle'} fill="var(--bad)">
                {narrow ? p.card.title.replace(/ \(.*/, '') : p.card.title}
              </text>
            </>
          ) : null}
        </svg>
      )}
      <p class="cap">
        {p.overhead
          ? t('Right of the line: more than the baseline; left of it: less.')
          : t(
              'Dashed: the baseline’s peak. Thin line under a bar: reserved at most. Hatched: predicted. A category keeps its colour in every view.',
            )}
      </p>
    </div>
  )
}

function Overhead(p: { list: Run[]; base: Run; cats: string[] }) {
  const rows = p.cats.filter((c) => p.list.some((r) => bytesOf(r, c) !== bytesOf(p.base, c)))
  return (
    <div class="panel heatwrap" tabIndex={0} role="region" aria-label={t('Overhead')}>
      <table class="heat">
        <thead>
          <tr>
            <th>
              {t('Overhead')}: {shown(p.base.label)}, MiB
            </th>
            {p.list.map((r) => (
              <th key={r.id} class="num" translate={false}>
                {shown(r.label)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((c) => (
            <tr key={c} class={dimmed(c) ? 'dim' : ''}>
              <td>
                <button
                  type="button"
                  class="plain"
                  onClick={() => {
                    pickCategory(c)
                  }}
                >
                  <Swatch color={colorOf(c)} /> {words(c)}
                </button>
              </td>
              {p.list.map((r) => {
                const d = bytesOf(r, c) - bytesOf(p.base, c)
                return (
                  <td key={r.id} class={`num ${r === p.base ? '' : d > 0 ? 'more' : d < 0 ? 'less' : 'muted'}`}>
                    {r === p.base ? mibs(bytesOf(r, c)) : d === 0 ? '0' : signedMibs(d)}
                  </td>
                )
              })}
            </tr>
          ))}
          <tr>
            <td>
              <b>{t('Peak')}</b>
            </td>
            {p.list.map((r) => (
              <td key={r.id} class="num">
                <b>
                  {r === p.base
                    ? mibs(r.main!.allocated_bytes)
                    : signedMibs(r.main!.allocated_bytes - p.base.main!.allocated_bytes)}
                </b>
              </td>
            ))}
          </tr>
        </tbody>
      </table>
    </div>
  )
}

/** Fits compares the memory that a run needs with every card. A click shows the card in the chart. */
function Fits(p: { need: number }) {
  return (
    <>
      <h2>
        {t('Does it fit?')} <small>{t('needs {bytes}; ✓ to spare, ✕ too much', { bytes: mib(p.need) })}</small>
      </h2>
      <div class="list plainlist" id="fits">
        {cards.map((c) => {
          const spare = c.bytes - p.need
          return (
            <>
              <button
                type="button"
                class="nm"
                aria-pressed={state.limit === c.name}
                onClick={() => {
                  set({ limit: c.name })
                }}
              >
                {c.title}
              </button>
              <span class={`num ${spare > 0 ? 'less' : 'more'}`}>
                {spare > 0 ? '✓' : '✕'} {mib(Math.abs(spare))}
              </span>
              <span class="pc" />
            </>
          )
        })}
      </div>
    </>
  )
}

/** Drill splits one category's bytes at the peak by their blocks. */
function Drill(p: { r: Run; category: string }) {
  const row = p.r.main!.categories.find((c) => c.category === p.category),
    d = blocks()
  if (!row) return null
  const by = (['module', 'name', 'line'] as const).find((k) => k === state.by) ?? 'module'
  const held = new Map<string, { bytes: number; names: Set<string> }>()
  const place = about.categories.findIndex((c) => c.name === p.category),
    at = d ? peakEvent(d) : 0
  if (d && d.meta.run_id === p.r.id && p.category !== 'slack') {
    for (let i = 0; i < d.kind.length; i++) {
      const k = d.kind[i]
      if (d.kinds.category[k] !== place || d.begin[i] > at || d.end[i] <= at) continue
      const text = d.texts[d.kinds[by][k]],
        name = folded(text),
        got = held.get(name) ?? { bytes: 0, names: new Set<string>() }
      got.bytes += d.kinds.requested[k]
      got.names.add(text)
      held.set(name, got)
    }
  }
  const list = [...held].sort((a, b) => b[1].bytes - a[1].bytes),
    most = 14
  return (
    <div id="drill">
      <h2>
        <span>
          <Swatch color={colorOf(p.category)} /> {words(p.category)}
        </span>
        <small>{t('{n} blocks', { n: count(row.blocks) })}</small>
      </h2>
      <p>
        <b>{mib(row.bytes)}</b>, {percent(row.bytes, p.r.main!.allocated_bytes)}. {t('Own maximum')}{' '}
        {mib(row.max_bytes)}. {t('evidence')}:{' '}
        {(
          [
            [row.tagged_bytes, 'tagged'],
            [row.lifetime_bytes, 'by lifetime'],
            [row.phase_only_bytes, 'by phase'],
          ] as const
        )
          .filter((q) => q[0])
          .map(([bytes, how]) => `${percent(bytes, row.bytes)} ${t(how)}`)
          .join(', ')}
        {row.shared_bytes
          ? t('. {shared} of {held} held is shared with others.', {
              shared: mib(row.shared_bytes),
              held: mib(row.held_bytes),
            })
          : ''}
      </p>
      <Seg
        label={t('click a category')}
        value={by}
        pick={(v) => {
          set({ by: v })
        }}
        options={[
          ['module', t('Modules')],
          ['name', t('Tensors')],
          ['line', t('Lines')],
        ]}
      />
      {d === null ? (
        <Loading />
      ) : (
        <div class="list plainlist">
          {list.slice(0, most).map(([name, got]) => (
            <>
              <span class="nm mono" title={shown(name)}>
                {shown(name) || t(by === 'module' ? '(no module)' : '(unknown)')}
              </span>
              <span class="num">{mib(got.bytes)}</span>
              <span class="pc">{got.names.size > 1 ? `× ${got.names.size}` : ''}</span>
            </>
          ))}
          {list.length > most ? (
            <>
              <span class="muted">
                {list.length - most} {t('others')}
              </span>
              <span class="num">{mib(list.slice(most).reduce((a, q) => a + q[1].bytes, 0))}</span>
              <span />
            </>
          ) : null}
        </div>
      )}
    </div>
  )
}

const rungs: Record<string, string> = {
  device_used: 'device used',
  other_processes: 'other processes',
  driver: 'driver',
  'context+modules+non_torch': 'context, modules, non-torch',
  reserved: 'reserved by torch',
  allocated: 'allocated',
  'pending_free+cached': 'cached',
}

export function Ladder(p: { r: Run }) {
  const run = docs.ladder?.runs.find((l: LadderRun) => l.run_id === p.r.id)
  if (!run?.gpus.length) return null
  return (
    <>
      {run.gpus.map((g) =>
        g.moments.slice(-1).map((m) => {
          const get = (name: string) => m.rungs.find((q) => q.rung === name)?.bytes ?? null
          const used = get('device_used') ?? get('reserved'),
            res = get('reserved'),
            al = get('allocated')
          if (!used || res === null) return null
          const inner = m.rungs.filter((q) =>
            ['context+modules+non_torch', 'driver', 'other_processes', 'pending_free+cached'].includes(q.rung),
          )
          const row = (list: [string, number | null, string][]) => (
            <div class="lad">
              {list
                .filter((q) => q[1] !== null)
                .map(([name, bytes, style], i) => (
                  <i
                    key={i}
                    class={style}
                    style={{ flex: Math.max(bytes! / used, 0.004) }}
                    title={`${name} ${mib(bytes)}`}
                  >
                    {bytes! / used > 0.14 && name ? (
                      <>
                        {name}&nbsp;<b>{mib(bytes)}</b>
                      </>
                    ) : null}
                  </i>
                ))}
            </div>
          )
          return (
            <div class="panel pad" key={g.uuid + m.at}>
              <h2>
                {t('What the GPU’s memory is')}{' '}
                <small>
                  {shown(g.gpu)}, {m.at.replaceAll('_', ' ')}
                  {m.event == null ? '' : `, ${t('event')} ${count(m.event)}`}
                </small>
              </h2>
              <div class="stack tight">
                {row([[t('device used'), used, 'sunk']])}
                {row([
                  [t('reserved by torch'), res, ''],
                  ['', used - res, 'sunk'],
                ])}
                {al === null
                  ? null
                  : row([
                      [t('allocated'), al, ''],
                      [t('cached'), res - al, 'hatched'],
                      ['', used - res, 'none'],
                    ])}
              </div>
              <p class="cap">{inner.map((q) => `${t(rungs[q.rung] ?? q.rung)} ${mib(q.bytes)}`).join(' · ')}</p>
            </div>
          )
        }),
      )}
    </>
  )
}

/** Ranks shows the devices of a run side by side if it has several. */
function Ranks(p: { r: Run }) {
  const all = p.r.breakdown?.devices ?? []
  if (all.length < 2) return null
  const most = Math.max(...all.map((d) => d.allocated_bytes))
  return (
    <div class="panel pad">
      <h2>
        {t('Ranks')} <small>{all.length}</small>
      </h2>
      <div class="stack tight">
        {all.map((d) => (
          <button
            type="button"
            class="plain rank"
            key={`${d.rank}/${d.device}`}
            onClick={() => {
              set({ device: `${d.rank}/${d.device}` })
            }}
          >
            <span>
              rank {d.rank}, {d.device}
            </span>
            <span class="lad" style={{ width: `${(d.allocated_bytes / most) * 100}%` }}>
              {d.categories
                .filter((c) => c.bytes)
                .map((c) => (
                  <i
                    key={c.category}
                    style={{ flex: c.bytes, background: colorOf(c.category) }}
                    title={`${words(c.category)} ${mib(c.bytes)}`}
                  />
                ))}
            </span>
            <b class="num">{mib(d.allocated_bytes)}</b>
          </button>
        ))}
      </div>
    </div>
  )
}
