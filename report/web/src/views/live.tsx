import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'
import { count, fixed, GiB, mib, ms, percent, shown, signedMib } from '../format'
import { t } from '../i18n'
import { live, type LiveDevice, type LiveFinding, type LiveProcess, type LiveRun } from '../live'
import type { Cell } from '../pen'
import { set, state } from '../state'
import { Lead, Missing, Pick, Rows, Save, textOf, useWidth } from '../ui'
import { binary, nice } from './runs'

/** Returns the device that is nearest to its memory limit, and its process. */
function highest(r: LiveRun): [LiveProcess | undefined, LiveDevice | undefined] {
  let process = r.processes.at(0),
    device = process?.devices.at(0)
  for (const p of r.processes)
    for (const d of p.devices)
      if (!device || d.peak_reserved_bytes > device.peak_reserved_bytes) {
        process = p
        device = d
      }
  return [process, device]
}

const age = (ns: number) => `${fixed(Math.max(0, ns) / 1e9, 1)} s`

export function Live() {
  const svg = useRef<SVGSVGElement>(null),
    r = live.run
  if (!r)
    return (
      <>
        <Lead answer={t('Nothing is being recorded')} />
        <Missing
          what={
            live.trouble ||
            t('A run appears here when it begins: dpsight collect -- python train.py, in the same store.')
          }
        />
      </>
    )
  const [p, d] = highest(r),
    steps = p?.steps ?? 0,
    free = r.limit_bytes && d ? r.limit_bytes - d.reserved_bytes : null
  const values = {
    run: shown(r.name),
    n: count(steps),
    of: count(r.planned),
    free: mib(free),
    bytes: mib(d?.allocated_bytes),
  }
  const answer = r.ended
    ? t('{run} has ended after {n} steps', values)
    : !p
      ? t('{run} begins: no process of it has used the GPU yet', values)
      : [
          t(r.planned ? '{run} is at step {n} of {of}' : '{run} is at step {n}', values),
          free === null
            ? t('{bytes} are allocated', values)
            : t('{free} of the device’s memory are not reserved by it', values),
        ].join(t('; '))
  const rows = (): Cell[][] => [
    ['rank', 'device', 'from_ms', 'ms', 'to_ms', 'step', 'allocated_bytes', 'lowest_bytes', 'reserved_bytes', 'source'],
    ...r.processes.flatMap((q) =>
      q.devices.flatMap((e) =>
        Array.from(e.points.ms, (at, i): Cell[] => [
          q.rank,
          `cuda:${e.device}`,
          e.points.from[i],
          at,
          e.points.to[i],
          e.points.step[i],
          e.points.allocated[i],
          e.points.low[i],
          e.points.reserved[i],
          e.points.counters[i] ? 'counters' : 'events',
        ]),
      ),
    ),
  ]
  return (
    <>
      <Lead answer={answer}>
        <span class={`tag ${r.ended ? '' : 'ok'}`}>{r.ended ? shown(r.status) : `● ${t('running')}`}</span>{' '}
        {r.predicted ? <span class="tag dash">◇ {t('predicted')}</span> : null} {t('phase')}{' '}
        <b>{p?.phase ? shown(p.phase) : '—'}</b>
        {p && !r.ended ? ` · ${t('last drain {age} ago', { age: age(r.now_ns - p.drain_ns) })}` : ''}
        {live.trouble ? <span class="tag bad">{live.trouble}</span> : null}
        {r.trouble ? <span class="tag warn">{shown(r.trouble)}</span> : null}
      </Lead>
      <div class="bar">
        {live.rows.length > 1 ? (
          <Pick
            label={t('Run')}
            value={r.run_id}
            options={live.rows.map((q) => [q.run_id, shown(q.name)])}
            pick={(id) => {
              live.wanted = id
              set({})
            }}
          />
        ) : null}
        <button
          class="btn"
          type="button"
          aria-pressed={live.paused}
          onClick={() => {
            live.paused = !live.paused
            set({})
          }}
        >
          {live.paused ? `▶ ${t('Follow')}` : `❚❚ ${t('Pause')}`}
        </button>
        <Save name={`live-${r.name}`} svg={() => textOf(svg.current, answer)} rows={rows} />
      </div>
      <Tiles r={r} p={p} d={d} />
      {state.table ? (
        <Rows rows={rows()} />
      ) : (
        <div class="split">
          <div class="stack">
            <div class="panel pad">
              <h2>
                {t('Memory against the device’s limit')} <small>{t('hatched: torch’s counters only')}</small>
              </h2>
              <Memory r={r} d={d} svg={svg} />
            </div>
            <div class="panel pad">
              <h2>
                {t('Step time')} <small>{t('the host’s clock')}</small>
              </h2>
              <Times p={p} />
            </div>
          </div>
          <aside class="stack">
            <div class="panel pad">
              <h2>{t('Newest findings')}</h2>
              {r.findings.length ? (
                <ul class="says">
                  {r.findings.map((f) => (
                    <li key={f.kind + String(f.step)} class="w">
                      {said(f)} <span class="muted">{t('step {n}', { n: count(f.step) })}</span>
                    </li>
                  ))}
                </ul>
              ) : (
                <p class="muted">{t('None so far. When the run has ended, Findings has all.')}</p>
              )}
            </div>
            <div class="panel pad">
              <h2>{t('Recording')}</h2>
              <dl class="kv">
                <dt>{t('Events').toLowerCase()}</dt>
                <dd>{count(p?.events ?? 0)}</dd>
                <dt>{t('now')}</dt>
                <dd>{p?.recording ? t('every event') : t('counters')}</dd>
                <dt>{t('drains')}</dt>
                <dd>{p ? `${count(p.drains)}, ${percent(p.drain_spent_ns, r.now_ns - r.start_ns)}` : '—'}</dd>
                <dt>{t('processes')}</dt>
                <dd>{count(r.processes.length)}</dd>
                <dt>{t('in a terminal')}</dt>
                <dd class="mono">dpsight watch</dd>
              </dl>
            </div>
          </aside>
        </div>
      )}
    </>
  )
}

function said(f: LiveFinding): string {
  const bytes = { from: mib(f.from), to: mib(f.to), delta: signedMib(f.to - f.from) }
  switch (f.kind) {
    case 'reserved_grows':
      return t(
        'Reserved grows with each step, from {from} to {to}; allocated does not. Free bytes lie in pieces.',
        bytes,
      )
    case 'allocated_grows':
      return t('More is left at the end of each step: {from} became {to}.', bytes)
    case 'slower':
      return t('The last step took {to}; the median is {from}.', { from: ms(f.from / 1e6), to: ms(f.to / 1e6) })
    case 'near_limit':
      return t('{from} of {to} were reserved.', bytes)
    default:
      return t('A request for {to} failed.', bytes)
  }
}

function Tile(p: { title: string; value: string; share?: number | null; children?: ComponentChildren }) {
  return (
    <div class="panel pad stat">
      <span>{p.title}</span>
      <b>{p.value}</b>
      {p.share == null ? <span>{p.children}</span> : null}
      {p.share == null ? null : (
        <div class="prog">
          <i style={{ width: `${Math.min(100, p.share * 100)}%` }} />
        </div>
      )}
    </div>
  )
}

function Tiles(p: { r: LiveRun; p: LiveProcess | undefined; d: LiveDevice | undefined }) {
  const { r, d } = p,
    at = p.p
  return (
    <div class="stats">
      <Tile
        title={r.limit_bytes ? t('Reserved, of {bytes}', { bytes: mib(r.limit_bytes) }) : t('Reserved')}
        value={mib(d?.reserved_bytes)}
        share={r.limit_bytes && d ? d.reserved_bytes / r.limit_bytes : null}
      />
      <Tile title={t('Peak allocated so far')} value={mib(d?.peak_allocated_bytes)}>
        {d && d.peak_step >= 0 ? t('step {n}', { n: count(d.peak_step) }) : ''}
      </Tile>
      <Tile title={t('Device used (NVML)')} value={mib(r.samples.bytes.length ? r.samples.bytes.at(-1) : null)}>
        {r.samples.ms.length ? t('{age} ago', { age: age(r.now_ns - r.start_ns - r.samples.ms.at(-1)! * 1e6) }) : ''}
      </Tile>
      <Tile title={t('Step time')} value={at?.last_step_ns ? ms(at.last_step_ns / 1e6) : '—'}>
        {at?.median_step_ns ? t('median {ms}', { ms: ms(at.median_step_ns / 1e6) }) : ''}
      </Tile>
      <Tile
        title={t('Progress')}
        value={r.planned ? `${count(at?.steps ?? 0)} / ${count(r.planned)}` : count(at?.steps ?? 0)}
        share={r.planned ? (at?.steps ?? 0) / r.planned : null}
      >
        {t('steps')}
      </Tile>
    </div>
  )
}

/** span returns the time that the axis covers: as long as the planned steps will take or, without a plan, twice as
    long whenever the axis is full. */
function span(r: LiveRun, steps: number): number {
  const now = (r.now_ns - r.start_ns) / 1e6
  if (r.ended) return Math.max(1, now)
  if (r.planned && steps >= 3) {
    const whole = 2 ** Math.ceil(Math.log2((now * r.planned) / steps / 1000) * 4) // so that it does not move each time
    return Math.max(now, 1000 * whole ** 0.25)
  }
  return 10_000 * 2 ** Math.max(0, Math.ceil(Math.log2(now / 10_000)))
}

function Memory(p: { r: LiveRun; d: LiveDevice | undefined; svg: { current: SVGSVGElement | null } }) {
  const [ref, W] = useWidth(),
    { r, d } = p,
    H = 284,
    left = 66,
    bottom = H - 24,
    now = (r.now_ns - r.start_ns) / 1e6,
    end = span(r, Math.max(0, ...r.processes.map((q) => q.steps)))
  let most = Math.max(1, d?.peak_reserved_bytes ?? 0, d?.peak_allocated_bytes ?? 0)
  for (const v of r.samples.bytes) most = Math.max(most, v)
  const limited = r.limit_bytes > 0 && r.limit_bytes < most * 8 // otherwise the curve would be a line at the bottom
  if (limited) most = Math.max(most, r.limit_bytes)
  most *= 1.06
  const X = (at: number) => left + (Math.max(0, at) / end) * (W - left - 14),
    Y = (bytes: number) => bottom - (bytes / most) * (bottom - 14),
    n = (v: number) => v.toFixed(1)
  const q = d?.points,
    areas: [string, string][] = []
  let reserved = ''
  if (q)
    for (let i = 0; i < q.ms.length; i++) {
      const to = i + 1 < q.ms.length && !q.counters[i + 1] ? q.from[i + 1] : Math.min(q.to[i], now),
        x0 = X(q.from[i]),
        x1 = Math.max(X(to), x0 + 0.5)
      areas.push([
        q.counters[i] ? 'url(#hatch)' : 'var(--edge)',
        `M${n(x0)} ${n(bottom)}V${n(Y(q.allocated[i]))}H${n(x1)}V${n(bottom)}Z`,
      ])
      reserved += `${i ? 'L' : 'M'}${n(x0)} ${n(Y(q.reserved[i]))}H${n(x1)}`
    }
  const big = most > 2 * GiB
  return (
    <div ref={ref}>
      {W ? (
        <svg
          ref={(e) => {
            p.svg.current = e
          }}
          viewBox={`0 0 ${W} ${H}`}
          width={W}
          height={H}
          role="img"
          aria-label={t('Memory against the device’s limit')}
        >
          <defs>
            <pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
              <rect width="3" height="7" fill="var(--edge)" opacity="0.6" />
            </pattern>
          </defs>
          {binary(most / (big ? GiB : 2 ** 20), 8).map((v) => (
            <g key={v}>
              <line
                class="gl"
                x1={left}
                x2={W - 14}
                y1={Y(v * (big ? GiB : 2 ** 20))}
                y2={Y(v * (big ? GiB : 2 ** 20))}
              />
              <text class="ax" x={left - 8} y={Y(v * (big ? GiB : 2 ** 20)) + 4} text-anchor="end">
                {v} {big ? 'GiB' : 'MiB'}
              </text>
            </g>
          ))}
          {['var(--edge)', 'url(#hatch)'].map((fill) => (
            <path
              key={fill}
              d={areas
                .filter((a) => a[0] === fill)
                .map((a) => a[1])
                .join('')}
              fill={fill}
              opacity={fill === 'var(--edge)' ? 0.6 : 1}
            />
          ))}
          <path d={reserved} fill="none" stroke="var(--ink)" stroke-width={1.2} stroke-dasharray="5 3" />
          <path
            d={Array.from(r.samples.ms, (at, i) => `${i ? 'L' : 'M'}${n(X(at))} ${n(Y(r.samples.bytes[i]))}`).join('')}
            fill="none"
            stroke="var(--warn)"
            stroke-width={1.2}
          />
          {limited ? (
            <>
              <line x1={left} x2={W - 14} y1={Y(r.limit_bytes)} y2={Y(r.limit_bytes)} stroke="var(--bad)" />
              <text x={left + 6} y={Y(r.limit_bytes) + 15} fill="var(--bad)">
                {t('limit')} {mib(r.limit_bytes)}
              </text>
            </>
          ) : null}
          <line x1={X(now)} x2={X(now)} y1={8} y2={bottom} stroke="var(--ink)" stroke-dasharray="3 3" id="now" />
          <text x={X(now) - 5} y={18} text-anchor="end" fill="var(--ink)">
            {t('now')}
          </text>
          {nice(0, end / 1000, W / 110).map((v) => (
            <text
              key={v}
              class="ax"
              x={Math.min(X(v * 1000), W - 2)}
              y={bottom + 16}
              text-anchor={X(v * 1000) > W - 40 ? 'end' : 'middle'}
            >
              {count(v)} s
            </text>
          ))}
        </svg>
      ) : null}
      <p class="hint">{t('area: allocated, the highest of each stretch · dashed: reserved · amber: NVML')}</p>
    </div>
  )
}

function Times(p: { p: LiveProcess | undefined }) {
  const [ref, W] = useWidth(),
    H = 130,
    left = 66,
    bottom = H - 24,
    all = p.p?.times,
    first = Math.max(1, (all?.step.length ?? 0) - 400),
    steps = all ? Array.from(all.step.slice(first), (step, i) => ({ step, i: first + i })) : []
  const most = Math.max(1e-3, ...steps.map((s) => all!.wall[s.i])) * 1.1
  const X = (i: number) => left + ((i - first + 0.5) / Math.max(1, steps.length)) * (W - left - 14),
    Y = (v: number) => bottom - (v / most) * (bottom - 8)
  return (
    <div ref={ref}>
      {W ? (
        <svg viewBox={`0 0 ${W} ${H}`} width={W} height={H} role="img" aria-label={t('Step time')}>
          {nice(0, most, 4).map((v) => (
            <g key={v}>
              <line class="gl" x1={left} x2={W - 14} y1={Y(v)} y2={Y(v)} />
              <text class="ax" x={left - 8} y={Y(v) + 4} text-anchor="end">
                {count(v)} ms
              </text>
            </g>
          ))}
          {steps.map((s) => (
            <circle
              key={s.step}
              cx={X(s.i)}
              cy={Y(all!.wall[s.i])}
              r={steps.length > 100 ? 2 : 4}
              fill={all!.recorded[s.i] ? 'var(--ink)' : 'var(--surface)'}
              stroke="var(--ink)"
            />
          ))}
          <text class="ax" x={left} y={H - 4}>
            {steps.length
              ? t('steps {a} to {b} · filled: with events', { a: count(steps[0].step), b: count(steps.at(-1)!.step) })
              : t('no step has ended after the first')}
          </text>
        </svg>
      ) : null}
    </div>
  )
}
