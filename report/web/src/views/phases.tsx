import { useRef } from 'preact/hooks'
import type { PhaseRow } from '../data'
import { count, mib, ms, percent, shown } from '../format'
import { t } from '../i18n'
import { about, baseline, current, currentDevice, docs } from '../model'
import type { Cell } from '../pen'
import { state } from '../state'
import { Lead, Missing, Rows, Save, textOf, useWidth } from '../ui'
import { goTo } from './timeline'

const time = (p: PhaseRow | undefined) => p?.gpu_ms ?? p?.wall_ms ?? null

export function Phases() {
  const svg = useRef<SVGSVGElement>(null),
    r = current(),
    base = baseline(),
    at = currentDevice()
  const of = (id: string | undefined) =>
    (docs.phases?.runs.find((q) => q.run_id === id)?.phases ?? []).filter(
      (p) => !at || id !== r?.id || (p.device === at.meta.device && p.rank === at.meta.rank),
    )
  const list = of(r?.id),
    other = base && base.id !== r?.id ? of(base.id) : []
  if (!r || !list.length)
    return (
      <>
        <Lead answer={t('nothing is known')} />
        <Missing what={about.missing.phases ?? `${shown(r?.label ?? '')} has no phases.`} />
      </>
    )
  const highest = list.slice().sort((a, b) => (b.peak_bytes ?? 0) - (a.peak_bytes ?? 0))[0]
  const longest = list.slice().sort((a, b) => (time(b)?.median ?? 0) - (time(a)?.median ?? 0))[0]
  const rows = (): Cell[][] => [
    ['run', 'phase', 'occurrences', 'peak_bytes', 'gpu_ms', 'wall_ms'],
    ...[[r.label, list] as const, ...(other.length ? [[base!.label, other] as const] : [])].flatMap(([name, l]) =>
      l.map((p): Cell[] => [
        name,
        p.phase,
        p.occurrences,
        p.peak_bytes,
        p.gpu_ms?.median ?? null,
        p.wall_ms?.median ?? null,
      ]),
    ),
  ]
  return (
    <>
      <Lead
        answer={t('The peak lies in {phase}; {longest} takes the longest', {
          phase: shown(highest.phase),
          longest: shown(longest.phase),
        })}
      >
        {shown(r.label)}
        {other.length ? t(' beside {base}', { base: shown(base!.label) }) : ''}.{' '}
        {t('Times are medians of bare steps on the GPU, where it was timed.')}
      </Lead>
      <div class="bar">
        <Save name={`dpsight-phases-${r.label}`} svg={() => textOf(svg.current, `${r.label}: phases`)} rows={rows} />
      </div>
      {state.table ? (
        <Rows rows={rows()} />
      ) : (
        <div class="stack">
          <div class="panel pad">
            <Bars list={list} other={other} svg={svg} />
          </div>
          <div class="panel heatwrap" tabIndex={0} role="region" aria-label={t('Phases')}>
            <table>
              <thead>
                <tr>
                  <th>{t('Phase')}</th>
                  <th class="num">n</th>
                  <th class="num">{t('Peak allocated')}</th>
                  <th class="num">% </th>
                  <th class="num">{t('Time')}</th>
                  <th class="num">{t('low–high')}</th>
                  <th class="num">% {t('Step').toLowerCase()}</th>
                  <th />
                </tr>
              </thead>
              <tbody>
                {list.map((p) => (
                  <tr key={p.phase}>
                    <td class="mono">{shown(p.phase)}</td>
                    <td class="num">{count(p.occurrences)}</td>
                    <td class="num">{mib(p.peak_bytes)}</td>
                    <td class="num">{p.peak_percent === null ? '—' : percent(p.peak_percent, 100)}</td>
                    <td class="num">
                      {ms(time(p)?.median)}
                      {p.gpu_ms ? '' : p.wall_ms ? ' (wall)' : ''}
                    </td>
                    <td class="num">{time(p) ? `${ms(time(p)!.low)} – ${ms(time(p)!.high)}` : '—'}</td>
                    <td class="num">{p.step_percent === null ? '—' : percent(p.step_percent, 100)}</td>
                    <td>
                      {r.main?.at.phase === p.phase ? (
                        <button
                          type="button"
                          class="btn"
                          onClick={() => {
                            goTo(r.main!.at.event, { view: 'timeline', mode: '' })
                          }}
                        >
                          {t('Peak')}
                        </button>
                      ) : null}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </div>
      )}
    </>
  )
}

function Bars(p: { list: PhaseRow[]; other: PhaseRow[]; svg: { current: SVGSVGElement | null } }) {
  const [ref, W] = useWidth(),
    step = 40,
    H = p.list.length * step + 26,
    narrow = W < 640,
    left = narrow ? 110 : 150
  const half = (W - left - 20) / 2,
    most = Math.max(1, ...[...p.list, ...p.other].map((q) => q.peak_bytes ?? 0))
  const longest = Math.max(1e-9, ...[...p.list, ...p.other].map((q) => time(q)?.median ?? 0))
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
          aria-label="Memory and time of each phase; the table has the numbers"
        >
          <text x={left} y={14} fill="var(--faint)">
            {t('Memory of phases')}
          </text>
          <text x={left + half + 20} y={14} fill="var(--faint)">
            {t('Time of phases')}
          </text>
          {p.list.map((q, i) => {
            const y = 24 + i * step,
              o = p.other.find((b) => b.phase === q.phase)
            const bar = (x: number, share: number, dy: number, h: number, fill: string, text: string) => (
              <>
                <rect
                  x={x}
                  y={y + dy}
                  width={Math.max(0, share * (half - 6))}
                  height={h}
                  fill={fill}
                  stroke="var(--edge)"
                  stroke-width={0.6}
                />
                {text ? (
                  <text
                    x={share > 0.55 ? x + share * (half - 6) - 6 : x + share * (half - 6) + 6}
                    y={y + dy + h - 4}
                    text-anchor={share > 0.55 ? 'end' : 'start'}
                    fill={share > 0.55 ? 'var(--surface)' : 'var(--ink)'}
                  >
                    {text}
                  </text>
                ) : null}
              </>
            )
            return (
              <g key={q.phase}>
                <text x={0} y={y + 15}>
                  {shown(q.phase).slice(0, narrow ? 15 : 21)}
                </text>
                {bar(
                  left,
                  (q.peak_bytes ?? 0) / most,
                  0,
                  18,
                  'var(--ink)',
                  q.peak_bytes === null ? '—' : mib(q.peak_bytes),
                )}
                {bar(
                  left + half + 20,
                  (time(q)?.median ?? 0) / longest,
                  0,
                  18,
                  'var(--ink)',
                  time(q) ? ms(time(q)!.median) : '—',
                )}
                {o ? bar(left, (o.peak_bytes ?? 0) / most, 20, 6, 'var(--sunk)', '') : null}
                {o ? bar(left + half + 20, (time(o)?.median ?? 0) / longest, 20, 6, 'var(--sunk)', '') : null}
              </g>
            )
          })}
        </svg>
      ) : null}
      <p class="cap">{t('Thin bars: the baseline.')}</p>
    </div>
  )
}
