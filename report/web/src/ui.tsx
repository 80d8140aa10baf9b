// Elements that several views share.

import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { mib, mibs, percent, shown } from './format'
import { category, t } from './i18n'
import { colorOf, current, type Run } from './model'
import { saveCSV, savePNG, saveSVG, theme, type Cell } from './pen'
import { set, state } from './state'

export function useWidth(): [(e: Element | null) => void, number] {
  const [width, setWidth] = useState(0),
    observer = useRef<ResizeObserver | null>(null)
  const ref = useRef((e: Element | null) => {
    observer.current?.disconnect()
    if (!e) return
    observer.current = new ResizeObserver(() => {
      setWidth(e.clientWidth)
    })
    observer.current.observe(e)
    setWidth(e.clientWidth)
  })
  return [ref.current, width]
}

export function Seg<T extends string>(p: {
  label: string
  value: T
  options: [T, string, string?][]
  pick: (v: T) => void
}) {
  return (
    <span class="seg" role="group" aria-label={p.label}>
      {p.options.map(([v, text, none]) => (
        <button
          key={v}
          type="button"
          aria-pressed={v === p.value}
          disabled={Boolean(none)}
          title={none ?? ''}
          onClick={() => {
            p.pick(v)
          }}
        >
          {text}
        </button>
      ))}
    </span>
  )
}

export function Pick(p: {
  label: string
  value: string
  options: [string, string][]
  pick: (v: string) => void
  class?: string
}) {
  return (
    <label class={`pick ${p.class ?? ''}`}>
      <span>{p.label}</span>
      <select
        value={p.value}
        onChange={(e) => {
          p.pick(e.currentTarget.value)
        }}
      >
        {p.options.map(([v, text]) => (
          <option key={v} value={v}>
            {text}
          </option>
        ))}
      </select>
    </label>
  )
}

/** Bounded says, if it is so, that the peak of the shown run is not known exactly. */
function Bounded() {
  const row = current()?.row
  if (row?.peak_low_bytes === undefined) return null
  return (
    <p class="bounded">
      ◇{' '}
      {t(
        'The peak is bounded: at least {low}, at most {high}. Recording began late, and the sizes of some blocks are not known; every figure here is of what is known.',
        { low: mib(row.peak_low_bytes), high: mib(row.peak_high_bytes) },
      )}
    </p>
  )
}

export function Lead(p: { answer: string; children?: ComponentChildren }) {
  return (
    <div class="lead">
      <div>
        <h1 id="answer">{p.answer}</h1>
        {p.children ? <p>{p.children}</p> : null}
        <Bounded />
      </div>
    </div>
  )
}

/** LeadWithout is the answer for a run that has counters and no allocator events. */
export const LeadWithout = (p: { run: string; peak: number | null | undefined }) => (
  <Lead
    answer={
      p.peak == null
        ? t('nothing is known')
        : t('{run} peaks at {peak}; it has counters only', { run: shown(p.run), peak: mib(p.peak) })
    }
  />
)

/** Save offers a chart for download: as a picture, and as the table behind it. */
export function Save(p: { name: string; svg: (() => string) | null; rows: () => Cell[][] }) {
  return (
    <>
      <span class="sp" />
      <span class="seg" role="group" aria-label={t('Save')}>
        {p.svg ? (
          <>
            <button
              type="button"
              onClick={() => {
                saveSVG(p.name, p.svg!())
              }}
            >
              SVG
            </button>
            <button
              type="button"
              onClick={() => {
                savePNG(p.name, p.svg!())
              }}
            >
              PNG
            </button>
          </>
        ) : null}
        <button
          type="button"
          onClick={() => {
            saveCSV(p.name, p.rows())
          }}
        >
          CSV
        </button>
      </span>
      <button
        class="ib"
        type="button"
        aria-pressed={state.table}
        onClick={() => {
          set({ table: !state.table })
        }}
      >
        {state.table ? t('Chart') : t('Table')} <kbd>Shift T</kbd>
      </button>
    </>
  )
}

const mostRows = 2000

/** Rows shows the table behind a chart. The first row has the titles. */
export function Rows(p: { rows: Cell[][] }) {
  const [head, ...rows] = p.rows
  return (
    <div class="panel heatwrap" tabIndex={0} role="region" aria-label={t('Table')}>
      <table>
        <thead>
          <tr>
            {head.map((c, i) => (
              <th key={i} class={typeof rows[0]?.[i] === 'number' ? 'num' : ''}>
                {c}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, mostRows).map((r, i) => (
            <tr key={i}>
              {r.map((c, k) => (
                <td key={k} class={typeof c === 'number' ? 'num' : 'mono'}>
                  {typeof c === 'string' ? shown(c) : (c ?? '—')}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > mostRows ? (
        <p class="pad cap">
          The first {mostRows} of {rows.length} rows; CSV has all.
        </p>
      ) : null}
    </div>
  )
}

export const Swatch = (p: { color: string }) => <span class="sw" style={{ background: p.color }} />

/** Composition lists categories, or other keys, with bars for their bytes. */
export function Composition(p: {
  rows: { name: string; label: string; color: string; bytes: number }[]
  total: number
  pick?: (name: string) => void
  signed?: boolean
}) {
  const rows = p.rows.slice().sort((a, b) => Math.abs(b.bytes) - Math.abs(a.bytes))
  const most = Math.max(1, ...rows.map((r) => Math.abs(r.bytes)))
  return (
    <div class="list">
      {rows.map((r) => (
        <>
          <Swatch color={r.color} />
          {p.pick ? (
            <button
              type="button"
              class="nm"
              aria-pressed={state.category === r.name}
              title={r.label}
              onClick={() => {
                p.pick!(r.name)
              }}
            >
              {r.label}
            </button>
          ) : (
            <span class="nm" title={r.label}>
              {r.label}
            </span>
          )}
          <span class={`num ${p.signed ? (r.bytes > 0 ? 'more' : 'less') : ''}`}>
            {(p.signed && r.bytes > 0 ? '+' : '') + mibs(r.bytes)}
          </span>
          <span class="pc">{percent(r.bytes, p.total)}</span>
          {Math.abs(r.bytes) / most > 0.004 ? (
            <span class="mini">
              <i style={{ width: `${(Math.abs(r.bytes) / most) * 100}%`, background: r.color }} />
            </span>
          ) : null}
        </>
      ))}
    </div>
  )
}

export const categoryRows = (of: { category: string; bytes: number }[]) =>
  of
    .filter((c) => c.bytes)
    .map((c) => ({ name: c.category, label: category(c.category), color: colorOf(c.category), bytes: c.bytes }))

/** pickCategory dims all other categories in every view. Picking the same category again undoes that. */
export const pickCategory = (name: string) => {
  set({ category: state.category === name ? null : name })
}
export const dimmed = (name: string) => state.category !== null && state.category !== name

/** Returns the source of an SVG in the page, with the theme's colours in place of variables. */
export function textOf(svg: SVGSVGElement | null, title: string): string {
  if (!svg) return ''
  const copy = svg.cloneNode(true) as SVGSVGElement,
    c = theme()
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg')
  const box = svg.viewBox.baseVal
  copy.setAttribute('width', String(box.width))
  copy.setAttribute('height', String(box.height))
  copy.setAttribute('font-family', 'system-ui, sans-serif')
  copy.setAttribute('font-size', '12')
  const name = document.createElementNS('http://www.w3.org/2000/svg', 'title')
  name.textContent = title
  const paper = document.createElementNS('http://www.w3.org/2000/svg', 'rect')
  paper.setAttribute('width', '100%')
  paper.setAttribute('height', '100%')
  paper.setAttribute('fill', c.paper)
  copy.prepend(name, paper)
  for (const e of copy.querySelectorAll('text')) if (!e.getAttribute('fill')) e.setAttribute('fill', c.ink)
  const colors: Record<string, string> = { ...c, surface: c.paper }
  return new XMLSerializer().serializeToString(copy).replace(/var\(--(\w+)\)/g, (_, k: string) => colors[k] ?? c.ink)
}

/** Announce makes screen readers read a text, at most four times a second. */
export function Announce(p: { text: string }) {
  const [said, say] = useState(''),
    timer = useRef(0)
  useEffect(() => {
    clearTimeout(timer.current)
    timer.current = window.setTimeout(() => {
      say(p.text)
    }, 250)
  }, [p.text])
  return (
    <div class="skip" role="status" aria-live="polite">
      {said}
    </div>
  )
}

export const Missing = (p: { what: string }) => (
  <div class="panel pad">
    <p class="muted">{p.what}</p>
  </div>
)
/** NoRoom replaces the blocks of a run if the page's file has only points, or nothing, about them. */
export const NoRoom = (p: { run: Run }) => (
  <>
    <Lead
      answer={t('{run} peaks at {peak}; its blocks are not in this file', {
        run: shown(p.run.label),
        peak: mib(p.run.row.peak_bytes),
      })}
    />
    <Missing what={t('The file has no room for the blocks of this run: dpsight report of fewer runs shows them.')} />
  </>
)
export const Loading = () => (
  <div class="panel pad" role="status">
    {t('Loading')}…<div class="skel" />
    <div class="skel" />
    <div class="skel" />
  </div>
)

export const Peak = (p: { bytes: number | null | undefined }) => <b class="num">{mib(p.bytes)}</b>
