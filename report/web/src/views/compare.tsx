import { useState } from 'preact/hooks'
import type { Explanation } from '../data'
import { mib, ms, percent, shown, signedMib, signedMs } from '../format'
import { category as words, t } from '../i18n'
import { about, baseline, colorOf, current, docs, runs, type Run } from '../model'
import { svgPen, theme, type Cell } from '../pen'
import { set, state } from '../state'
import { Lead, Missing, Pick, Rows, Save, Seg, Swatch } from '../ui'

interface Step {
  key: string
  label: string
  color: string
  delta: number
  parts: { name: string; delta: number }[]
}

const bytesOf = (r: Run, c: string) => r.main?.categories.find((q) => q.category === c)?.bytes ?? 0

function memorySteps(base: Run, r: Run, doc: Explanation | undefined): Step[] {
  return about.categories
    .map((c) => ({
      key: c.name,
      label: words(c.name),
      color: c.color,
      delta: bytesOf(r, c.name) - bytesOf(base, c.name),
      parts: (doc?.categories.find((q) => q.category === c.name)?.modules ?? [])
        .filter((m) => m.delta_bytes)
        .map((m) => ({ name: m.module ?? '', delta: m.delta_bytes })),
    }))
    .filter((s) => s.delta)
}

const phaseColor = '#6d7b8a'

function timeSteps(doc: Explanation | undefined): Step[] {
  const modules = (doc?.module_times ?? []) as (NonNullable<Explanation['module_times']>[number] & {
    phases?: { phase: string; delta_ms: number }[]
  })[]
  return (doc?.phases ?? [])
    .filter((p) => p.delta_ms)
    .map((p) => ({
      key: p.phase,
      label: shown(p.phase),
      color: phaseColor,
      delta: p.delta_ms,
      parts: modules
        .map((m) => ({ name: m.module ?? '', delta: m.phases?.find((q) => q.phase === p.phase)?.delta_ms ?? 0 }))
        .filter((m) => m.delta)
        .sort((a, b) => Math.abs(b.delta) - Math.abs(a.delta)),
    }))
}

export function Compare() {
  const [open, setOpen] = useState<string[] | null>(null)
  const r = current(),
    base = baseline(),
    time = state.mode === 'time'
  if (!r?.main || !base?.main)
    return (
      <>
        <Lead answer={t('nothing is known')} />
        <Missing what={t('Two runs with a peak are compared.')} />
      </>
    )
  const doc = docs[`explain ${r.id}`]?.from === base.id ? docs[`explain ${r.id}`] : undefined
  const steps = (time ? timeSteps(doc) : memorySteps(base, r, doc)).sort((a, b) => b.delta - a.delta)
  const from = time ? base.row.step_ms : base.main.allocated_bytes,
    to = time ? r.row.step_ms : r.main.allocated_bytes
  const say = (v: number) => (time ? ms(v) : mib(v)),
    signed = (v: number) => (time ? signedMs(v) : signedMib(v))
  const delta = from !== null && to !== null ? to - from : 0
  const ranked = steps.slice().sort((a, b) => Math.abs(b.delta) - Math.abs(a.delta)),
    same = ranked.filter((s) => s.delta > 0 === delta > 0),
    first = same.at(0) ?? ranked.at(0),
    // A second category is named in the answer if it makes at least a fifth of the whole difference.
    second = same.slice(1).find((s) => Math.abs(s.delta) > Math.abs(delta) / 5)
  const who = {
    run: shown(r.label),
    base: shown(base.label),
    delta: say(Math.abs(delta)),
    category: first?.label ?? '',
    where: first?.label ?? '',
    second: second?.label ?? '',
  }
  const answer = time
    ? delta > 0
      ? t(
          second
            ? '{run} takes {delta} a step more than {base}, most of it in {where} and {second}'
            : '{run} takes {delta} a step more than {base}, most of it in {where}',
          who,
        )
      : t('{run} takes {delta} a step less than {base}', who)
    : delta > 0
      ? t(
          second
            ? '{run} peaks {delta} above {base}, most of it {category} and {second}'
            : '{run} peaks {delta} above {base}, most of it {category}',
          who,
        )
      : delta < 0
        ? t('{run} peaks {delta} below {base}', who)
        : t('{run} peaks as high as {base}', who)
  let at = from ?? 0,
    low = Math.min(at, to ?? at),
    high = Math.max(at, to ?? at)
  const placed = steps.map((s) => {
    const begin = at
    at += s.delta
    low = Math.min(low, at)
    high = Math.max(high, at)
    return { ...s, begin, end: at }
  })
  // The axis begins above zero, at bytes that both runs have, and a text states that.
  const cut = low - (high - low) * 0.35 > high * 0.1 ? low - (high - low) * 0.35 : 0
  const X = (v: number) => ((v - cut) / (high - cut || 1)) * 100,
    isOpen = (k: string) => (open ?? (first ? [first.key] : [])).includes(k)
  const rows = (): Cell[][] => [
    ['step', 'module', time ? 'delta_ms' : 'delta_bytes'],
    [base.label, '', from],
    ...placed.flatMap((s): Cell[][] => [[s.key, '', s.delta], ...s.parts.map((p): Cell[] => [s.key, p.name, p.delta])]),
    [r.label, '', to],
  ]
  const svg = () => {
    const c = theme(),
      W = 1000,
      H = 60 + 34 * (placed.length + 2),
      g = svgPen(W, H, c.paper),
      L = 220,
      B = W - L - 150
    const bar = (y: number, label: string, x0: number, x1: number, fill: string, text: string) => {
      g.text(label, 12, y + 12, c.ink)
      g.rect(L + (Math.min(x0, x1) / 100) * B, y, (Math.abs(x1 - x0) / 100) * B, 22, fill)
      g.text(text, W - 12, y + 12, c.ink, 'right', true)
    }
    bar(14, base.label, 0, X(from ?? 0), c.ink, say(from ?? 0))
    placed.forEach((s, i) => {
      bar(48 + i * 34, s.label, X(s.begin), X(s.end), s.color, signed(s.delta))
    })
    bar(48 + placed.length * 34, r.label, 0, X(to ?? 0), c.ink, say(to ?? 0))
    if (cut) g.text(`the axis begins at ${say(cut)}`, L, H - 14, c.warn)
    return g.done(answer)
  }
  const equal = time
    ? []
    : about.categories.filter((c) => bytesOf(r, c.name) && bytesOf(r, c.name) === bytesOf(base, c.name))
  return (
    <>
      <Lead answer={answer}>
        {say(from ?? 0)} → {say(to ?? 0)}
        {from ? ` (${percent(delta, from)})` : ''}.{' '}
        {time ? t('Phases by the median of bare steps.') : t('Each category is counted at its own run’s peak.')}
      </Lead>
      <div class="bar">
        <Seg
          label="What"
          value={time ? 'time' : 'memory'}
          pick={(mode) => {
            set({ mode })
          }}
          options={[
            ['memory', t('Memory')],
            ['time', t('Time'), doc?.phases?.length ? '' : t('No times of both runs are in this file.')],
          ]}
        />
        <Pick
          label={t('From')}
          value={base.label}
          options={runs.filter((q) => q.main).map((q) => [q.label, shown(q.label)])}
          pick={(v) => {
            set({ base: v })
          }}
        />
        <Pick
          label={t('to')}
          value={r.label}
          options={runs.filter((q) => q.main).map((q) => [q.label, shown(q.label)])}
          pick={(v) => {
            set({ run: v })
          }}
        />
        <button
          type="button"
          class="ib"
          aria-label="swap"
          onClick={() => {
            set({ run: base.label, base: r.label })
          }}
        >
          ⇄
        </button>
        <Save name={`dpsight-compare-${base.label}-${r.label}`} svg={svg} rows={rows} />
      </div>
      {state.table ? (
        <Rows rows={rows()} />
      ) : (
        <div class="split">
          <div class="panel wf" id="waterfall">
            <Total label={base.label} value={say(from ?? 0)} x={X(from ?? 0)} cut={cut > 0} />
            {placed.map((s) => (
              <>
                <div class="wr" key={s.key}>
                  <button
                    type="button"
                    class="lab"
                    aria-expanded={isOpen(s.key)}
                    disabled={!s.parts.length}
                    onClick={() => {
                      const now = open ?? (first ? [first.key] : [])
                      setOpen(isOpen(s.key) ? now.filter((k) => k !== s.key) : [...now, s.key])
                    }}
                  >
                    <span class="muted">{s.parts.length ? (isOpen(s.key) ? '▾' : '▸') : ' '}</span>
                    <Swatch color={s.color} /> {s.label}
                  </button>
                  <div class="t">
                    <u style={{ left: `${X(s.begin)}%` }} />
                    <Bar from={X(s.begin)} to={X(s.end)} color={s.color} />
                  </div>
                  <div class={`num ${s.delta > 0 ? 'more' : 'less'}`}>{signed(s.delta)}</div>
                  <div class="num muted x">{percent(s.delta, delta)}</div>
                </div>
                {isOpen(s.key) ? parts(s, X, signed, delta) : null}
              </>
            ))}
            <Total label={r.label} value={say(to ?? 0)} x={X(to ?? 0)} cut={cut > 0} joined />
            <p class="cap foot0">
              {cut ? (
                <span class="warn">
                  {t('The axis begins at {at}; the striped foot marks the cut.', { at: say(cut) })}{' '}
                </span>
              ) : null}
              {equal.length ? (
                <>
                  {t('Equal in both:')}{' '}
                  {equal.map((c) => (
                    <span key={c.name}>
                      <Swatch color={colorOf(c.name)} /> {words(c.name)} {mib(bytesOf(r, c.name))}{' '}
                    </span>
                  ))}
                </>
              ) : null}
            </p>
          </div>
          <aside class="panel pad tall" tabIndex={0}>
            <h2>{t('In words')}</h2>
            {doc ? (
              <ul class="says">
                {doc.warnings.map((w) => (
                  <li key={w} class="w">
                    ⚠ {shown(w)}
                  </li>
                ))}
                {doc.sentences
                  .filter((w) => doc.step_sentences.includes(w) === time)
                  .map((w) => (
                    <li key={w}>{shown(w)}</li>
                  ))}
              </ul>
            ) : (
              <p class="muted">
                The file explains runs over {shown(runs.find((q) => q.id === docs.overhead?.baseline)?.label ?? '—')}{' '}
                alone: dpsight explain {shown(base.label)} {shown(r.label)}
              </p>
            )}
          </aside>
        </div>
      )}
    </>
  )
}

const Bar = (p: { from: number; to: number; color: string }) => (
  <i
    style={{
      left: `${Math.min(p.from, p.to)}%`,
      width: `${Math.max(0.3, Math.abs(p.to - p.from))}%`,
      background: p.color,
    }}
  />
)

function Total(p: { label: string; value: string; x: number; cut: boolean; joined?: boolean }) {
  return (
    <div class="wr tot">
      <div class="lab">{shown(p.label)}</div>
      <div class="t">
        {p.joined ? <u style={{ left: `${p.x}%` }} /> : null}
        <i class={p.cut ? 'cut' : 'solid'} style={{ left: 0, width: `${p.x}%` }} />
      </div>
      <div class="num">
        <b>{p.value}</b>
      </div>
      <div class="x" />
    </div>
  )
}

const mostParts = 12

function parts(s: Step & { begin: number }, X: (v: number) => number, signed: (v: number) => string, total: number) {
  let at = s.begin
  const out = s.parts.slice(0, mostParts).map((p) => {
    const begin = at
    at += p.delta
    return (
      <div class="wr" key={`${s.key}/${p.name}`}>
        <div class="lab sub">
          <span class="mono nm">{shown(p.name) || t('(no module)')}</span>
        </div>
        <div class="t sub">
          <u style={{ left: `${X(begin)}%` }} />
          <Bar from={X(begin)} to={X(at)} color={s.color} />
        </div>
        <div class="num sub">{signed(p.delta)}</div>
        <div class="num sub muted x">{percent(p.delta, total)}</div>
      </div>
    )
  })
  const rest = s.parts.slice(mostParts)
  if (rest.length)
    out.push(
      <div class="wr" key={`${s.key}/…`}>
        <div class="lab sub">
          {rest.length} {t('others')}
        </div>
        <div class="t sub" />
        <div class="num sub">{signed(rest.reduce((a, p) => a + p.delta, 0))}</div>
        <div class="sub x" />
      </div>,
    )
  return out
}
