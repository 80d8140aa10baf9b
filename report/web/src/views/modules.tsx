import { useRef } from 'preact/hooks'
import type { Device } from '../data'
import { count, mib, ms, percent, shown } from '../format'
import { category as words, t } from '../i18n'
import { about, blocks, colorOf, current, currentDevice, docs, failed, peakEvent } from '../model'
import { fontSize, type Cell } from '../pen'
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
  NoRoom,
  pickCategory,
  Rows,
  Save,
  Seg,
  Swatch,
  textOf,
  useWidth,
} from '../ui'
import { detailNote } from './timeline'

interface Node {
  name: string
  path: string
  bytes: number
  own: Float64Array
  all: Float64Array
  children: Map<string, Node>
  paths: Set<string>
}

const node = (name: string, path: string): Node => ({
  name,
  path,
  bytes: 0,
  children: new Map(),
  paths: new Set(),
  own: new Float64Array(about.categories.length),
  all: new Float64Array(about.categories.length),
})

/** tree returns the bytes of a moment as a tree of modules. */
function tree(d: Device, event: number, fold: boolean): Node {
  const root = node('', ''),
    slack = about.categories.findIndex((c) => c.name === 'slack')
  for (let p = 0; p < d.kind.length; p++) {
    if (d.begin[p] > event || d.end[p] <= event) continue
    const k = d.kind[p],
      text = d.texts[d.kinds.module[k]],
      path = fold ? folded(text) : text
    let at = root
    const add = (n: Node) => {
      n.all[d.kinds.category[k]] += d.kinds.requested[k]
      n.all[slack] += d.kinds.slack[k]
      n.bytes += d.kinds.requested[k] + d.kinds.slack[k]
      n.paths.add(text)
    }
    add(root)
    const parts =
      path === '' || path.startsWith('(')
        ? [path]
        : path
            .replace(/\.\*/g, '\u0000*')
            .split('.')
            .map((q) => q.replaceAll('\u0000', '.'))
    let so = ''
    for (const name of parts) {
      so = so ? `${so}.${name}` : name
      let next = at.children.get(name)
      if (!next) at.children.set(name, (next = node(name, so)))
      add(next)
      at = next
    }
    at.own[d.kinds.category[k]] += d.kinds.requested[k]
  }
  return root
}

/** itself returns the bytes that a module holds outside its submodules, as a node. */
function itself(n: Node): Node | null {
  if (!n.path || !n.children.size) return null
  const bytes = n.bytes - [...n.children.values()].reduce((a, c) => a + c.bytes, 0)
  if (bytes <= 0) return null
  const rest = n.all.slice()
  for (const c of n.children.values()) for (let i = 0; i < rest.length; i++) rest[i] -= c.all[i]
  return { ...node(t('itself'), n.path), bytes, all: rest }
}

const sorted = (n: Node) => [...n.children.values()].sort((a, b) => b.bytes - a.bytes)
const called = (n: Node) => shown(n.name) || t('(no module)')

function depth(n: Node): number {
  return 1 + Math.max(0, ...[...n.children.values()].map(depth))
}

/** AtEvent lets the reader choose the moment. */
function AtEvent(p: { of: Device; event: number }) {
  return (
    <>
      <label class="moment">
        {t('event')}
        <input
          type="range"
          min={p.of.meta.from}
          max={p.of.meta.to}
          value={p.event}
          onInput={(e) => {
            set({ event: Number(e.currentTarget.value) })
          }}
        />
      </label>
      <button
        type="button"
        class="ib"
        onClick={() => {
          set({ event: peakEvent(p.of) })
        }}
      >
        {t('Peak')}
      </button>
    </>
  )
}

export function Modules() {
  const svg = useRef<SVGSVGElement>(null),
    [ref, W] = useWidth()
  const r = current(),
    at = currentDevice(),
    d = at ? blocks() : null
  if (!r || !at)
    return (
      <>
        <LeadWithout run={r?.label ?? ''} peak={r?.row.peak_bytes} />
        <Missing what={`${shown(r?.label ?? '')} has no allocator events.`} />
      </>
    )
  if (!d) return failed ? <Missing what={failed} /> : <Loading />
  if (!d.kind.length) return <NoRoom run={r} />
  const event = state.event ?? peakEvent(d),
    root = tree(d, event, state.mode !== 'each')
  const find = (n: Node): Node | undefined =>
    n.path === state.module && n.path ? n : sorted(n).map(find).find(Boolean)
  const top = sorted(root).at(0),
    chosen = find(root) ?? top
  const rows = (): Cell[][] => {
    const out: Cell[][] = [['module', 'modules', 'bytes', ...about.categories.map((c) => c.name)]]
    const walk = (n: Node) => {
      out.push([n.path, n.paths.size, n.bytes, ...n.all])
      sorted(n).forEach(walk)
    }
    sorted(root).forEach(walk)
    return out
  }
  if (!top || !chosen)
    return (
      <>
        <div class="bar">
          <AtEvent of={d} event={event} />
        </div>
        <Missing what={t('nothing is allocated then')} />
      </>
    )
  const times = docs.time?.runs.find((q) => q.run_id === r.id)?.ranks.at(0)?.rows ?? []
  const near = times.filter(
    (q) => typeof q.key === 'string' && (q.key === folded(chosen.path) || q.key.startsWith(folded(chosen.path) + '.')),
  )
  const each = tree(d, event, false),
    family = numbered(each),
    inner = sorted(top).at(0)
  return (
    <>
      <Lead
        answer={t(
          event !== peakEvent(d)
            ? '{module} holds the most then, {bytes} ({share})'
            : inner
              ? '{module} holds the most of the peak, {bytes} ({share}); {inner} in it holds the most, {most}'
              : '{module} holds the most of the peak, {bytes} ({share})',
          {
            module: called(top),
            bytes: mib(top.bytes),
            share: percent(top.bytes, root.bytes),
            // The own name of a layer is only a number, so the path is shown.
            inner: inner ? (/^\d+$/.test(inner.name) ? shown(inner.path) : called(inner)) : '',
            most: mib(inner?.bytes),
          },
        )}
      >
        {shown(r.label)}, {t('event')} {count(event)}
        {event === peakEvent(d) ? ` (${t('Peak').toLowerCase()})` : ''}.{' '}
        {t('Width is bytes; the strip in a cell is what they are for. A click takes a module apart.')}{' '}
        {d.meta.detail === 'all' ? '' : detailNote(d)}
      </Lead>
      <div class="bar">
        <Seg
          label="Layers"
          value={state.mode === 'each' ? 'each' : 'fold'}
          pick={(mode) => {
            set({ mode })
          }}
          options={[
            ['fold', t('Fold like layers')],
            ['each', t('Each layer')],
          ]}
        />
        <AtEvent of={d} event={event} />
        <Save
          name={`dpsight-modules-${r.label}`}
          svg={() => textOf(svg.current, `${r.label}: memory by module`)}
          rows={rows}
        />
      </div>
      {state.table ? (
        <Rows rows={rows()} />
      ) : (
        <div class="split">
          <div class="stack" ref={ref}>
            <div class="panel pad">
              {W < 560 ? <Indented root={root} /> : <Icicle root={root} width={W - 34} svg={svg} chosen={chosen} />}
              <p class="cap legend">
                {about.categories
                  .filter((_, i) => root.all[i] > root.bytes / 1000)
                  .map((c) => (
                    <span key={c.name}>
                      <Swatch color={c.color} /> {words(c.name)}
                    </span>
                  ))}
              </p>
            </div>
            {family.length > 1 ? <Layers list={family} /> : null}
          </div>
          <aside class="panel pad">
            <h2>
              <span class="mono">{shown(chosen.path) || t('(no module)')}</span>{' '}
              <small>{percent(chosen.bytes, root.bytes)}</small>
            </h2>
            <p>
              <b data-n="module">{mib(chosen.bytes)}</b>
              {chosen.paths.size > 1 ? `, ${count(chosen.paths.size)} ${t('modules')}` : ''}
            </p>
            <Composition
              rows={categoryRows(about.categories.map((c, i) => ({ category: c.name, bytes: chosen.all[i] })))}
              total={chosen.bytes}
              pick={pickCategory}
            />
            {near.length ? (
              <>
                <hr />
                <h2>{t('Time')}</h2>
                <div class="list plainlist">
                  {near.slice(0, 10).map((q) => (
                    <>
                      <span class="nm mono" title={shown(String(q.key))}>
                        {shown(String(q.key))}
                      </span>
                      <span class="num">{ms(Number(q.ms))}</span>
                      <span class="pc" />
                    </>
                  ))}
                </div>
              </>
            ) : null}
          </aside>
        </div>
      )}
    </>
  )
}

/** Returns the largest family of modules whose names differ only by a number: the layers. */
function numbered(root: Node): Node[] {
  let best: Node[] = []
  const walk = (n: Node) => {
    const list = [...n.children.values()].filter((c) => /^\d+$/.test(c.name))
    if (list.reduce((a, c) => a + c.bytes, 0) > best.reduce((a, c) => a + c.bytes, 0) && list.length > 1) best = list
    n.children.forEach(walk)
  }
  walk(root)
  return best.sort((a, b) => Number(a.name) - Number(b.name))
}

function Icicle(p: { root: Node; width: number; svg: { current: SVGSVGElement | null }; chosen: Node }) {
  const scale = fontSize() / 12,
    cell = 58 * scale,
    H = Math.min(9, depth(p.root)) * cell,
    out: preact.JSX.Element[] = []
  const walk = (n: Node, x: number, y: number, w: number) => {
    const fits = Math.floor((w - 10) / (7.6 * scale)),
      name = n === p.root ? shown(current()?.label ?? '') : called(n)
    out.push(
      <g
        key={`${n.path}/${n.name}/${y}`}
        class="hov"
        onClick={() => {
          set({ module: n.path })
        }}
      >
        <rect
          x={x + 0.5}
          y={y + 0.5}
          width={Math.max(0, w - 1)}
          height={cell - 4}
          fill={n === p.chosen ? 'var(--sunk)' : 'var(--bg)'}
          stroke={n === p.chosen ? 'var(--ink)' : 'var(--edge)'}
          stroke-width={n === p.chosen ? 1.6 : 0.7}
        >
          <title>{`${shown(n.path)} ${mib(n.bytes)}`}</title>
        </rect>
        {fits > 3 ? (
          <text x={x + 6} y={y + 16 * scale} font-weight={600} pointer-events="none">
            {name.length > fits ? name.slice(0, fits - 1) + '…' : name}
          </text>
        ) : null}
        {fits > 9 ? (
          <text x={x + 6} y={y + 31 * scale} fill="var(--faint)" pointer-events="none">
            {mib(n.bytes)}
            {fits > 22 ? ` · ${percent(n.bytes, p.root.bytes)}` : ''}
          </text>
        ) : null}
        {strip(n, x + 4, y + 38 * scale, Math.max(0, w - 8), 11 * scale)}
      </g>,
    )
    if (y + cell >= H) return
    let at = x,
      others = 0,
      bytes = 0
    const own = itself(n)
    for (const c of own ? [...sorted(n), own] : sorted(n)) {
      const cw = (c.bytes / n.bytes) * w
      if (cw < 3) {
        others++
        bytes += c.bytes
        continue
      }
      walk(c, at, y + cell, cw)
      at += cw
    }
    if (others && (bytes / n.bytes) * w > 0.5)
      out.push(
        <rect
          key={`${n.path}/others`}
          x={at}
          y={y + cell}
          width={(bytes / n.bytes) * w}
          height={cell - 4}
          fill="var(--line)"
        >
          <title>{`${others} ${t('others')}, ${mib(bytes)}`}</title>
        </rect>,
      )
  }
  walk(p.root, 0, 0, p.width)
  return (
    <svg
      ref={(e) => {
        p.svg.current = e
      }}
      viewBox={`0 0 ${p.width} ${H}`}
      width={p.width}
      height={H}
      role="img"
      aria-label="Memory by module; the table has the numbers"
    >
      {out}
    </svg>
  )
}

function strip(n: Node, x: number, y: number, w: number, h: number) {
  let at = x
  return about.categories.map((c, i) => {
    const cw = (n.all[i] / n.bytes) * w
    if (cw < 0.4) return null
    at += cw
    return (
      <rect
        key={c.name}
        x={at - cw}
        y={y}
        width={cw}
        height={h}
        fill={c.color}
        stroke="var(--edge)"
        stroke-width={0.4}
        opacity={dimmed(c.name) ? 0.25 : 1}
        pointer-events="none"
      />
    )
  })
}

function Indented(p: { root: Node }) {
  const out: preact.JSX.Element[] = []
  const walk = (n: Node, level: number) => {
    if (n.bytes < p.root.bytes / 2000) return
    out.push(
      <li key={n.path} style={{ paddingLeft: `${level * 14}px` }}>
        <button
          type="button"
          class="plain modrow"
          onClick={() => {
            set({ module: n.path })
          }}
        >
          <span class="mono">{called(n)}</span>
          <span class="num">{mib(n.bytes)}</span>
        </button>
        <span class="lad thin" style={{ width: `${(n.bytes / p.root.bytes) * 100}%` }}>
          {about.categories.map((c, i) =>
            n.all[i] ? <i key={c.name} style={{ flex: n.all[i], background: c.color }} title={words(c.name)} /> : null,
          )}
        </span>
      </li>,
    )
    sorted(n).forEach((c) => {
      walk(c, level + 1)
    })
  }
  sorted(p.root).forEach((c) => {
    walk(c, 0)
  })
  return <ul class="tree">{out}</ul>
}

function Layers(p: { list: Node[] }) {
  const [ref, W] = useWidth(),
    most = Math.max(...p.list.map((n) => n.bytes)),
    H = innerWidth >= 2200 ? 320 : 190,
    w = Math.max(1, (W - 4) / p.list.length)
  const mean = p.list.reduce((a, n) => a + n.bytes, 0) / p.list.length,
    odd = p.list.filter((n) => Math.abs(n.bytes - mean) > mean * 0.02)
  return (
    <div class="panel pad" ref={ref}>
      <h2>
        {t('Layers side by side')}{' '}
        <small>
          {shown(p.list[0].path)} … {shown(p.list[p.list.length - 1].name)}
        </small>
      </h2>
      {W > 34 ? (
        <svg
          viewBox={`0 0 ${W - 34} ${H + 20}`}
          width={W - 34}
          height={H + 20}
          role="img"
          aria-label={`Memory of ${p.list.length} layers`}
        >
          {p.list.map((n, i) => {
            let y = H
            const x = i * ((W - 34) / p.list.length)
            return (
              <g key={n.path}>
                {about.categories.map((c, k) => {
                  const h = (n.all[k] / most) * (H - 6)
                  y -= h
                  return h > 0.3 ? (
                    <rect
                      key={c.name}
                      x={x + 2}
                      y={y}
                      width={Math.max(1, w - 6)}
                      height={h}
                      fill={colorOf(c.name)}
                      stroke="var(--edge)"
                      stroke-width={0.4}
                      opacity={dimmed(c.name) ? 0.25 : 1}
                    >
                      <title>{`${shown(n.path)} ${words(c.name)} ${mib(n.all[k])}`}</title>
                    </rect>
                  ) : null
                })}
                {w > 16 ? (
                  <text x={x + w / 2 - 1} y={H + 15} text-anchor="middle" fill="var(--faint)">
                    {n.name}
                  </text>
                ) : null}
              </g>
            )
          })}
        </svg>
      ) : null}
      <p class="cap">
        {odd.length
          ? t('Unlike the mean of {bytes} by more than 2 %: {layers}.', {
              bytes: mib(mean),
              layers: odd
                .slice(0, 8)
                .map((n) => `${shown(n.name)} (${mib(n.bytes)})`)
                .join(', '),
            })
          : t('Every layer holds {bytes}, within 2 %: folding hides nothing.', { bytes: mib(mean) })}
      </p>
    </div>
  )
}
