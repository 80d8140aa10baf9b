// The state says what the reader looks at. The page's address contains the whole state, so a link shows the same view.

import type { Dimension } from './series'
import { served } from './source'

export const views = [
  'runs',
  'breakdown',
  'timeline',
  'blocks',
  'modules',
  'compare',
  'findings',
  'phases',
  'proof',
  'live',
] as const
export type View = (typeof views)[number]
/** The views of this page. A page from a file has no Live view, since a file has no runs that are being recorded. */
export const shownHere = views.filter((v) => served || v !== 'live')

export interface State {
  view: View
  run: string // the id of a run
  base: string
  selected: string[] | null
  device: string // 'rank/device'; empty means the device with the highest peak
  event: number | null
  from: number | null
  to: number | null
  a: number | null
  b: number | null
  by: Dimension
  axis: 'event' | 'time'
  scope: 'exact' | 'whole'
  reserved: boolean
  sampled: boolean
  host: boolean
  category: string | null
  mode: string // mode of a view that has several modes
  query: string
  only: string // the facts that the shown runs have
  module: string // the chosen module
  sort: string
  table: boolean
  limit: string
  lang: 'en' | 'zh'
  theme: 'light' | 'dark'
}

const initial: State = {
  view: 'runs',
  run: '',
  base: '',
  selected: null,
  device: '',
  event: null,
  from: null,
  to: null,
  a: null,
  b: null,
  by: 'category',
  axis: 'event',
  scope: 'exact',
  reserved: true,
  sampled: false,
  host: false,
  category: null,
  mode: '',
  query: '',
  only: '',
  module: '',
  sort: '-peak',
  table: false,
  limit: '80',
  lang: navigator.language.startsWith('zh') ? 'zh' : 'en',
  theme: matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light',
}

// An address ends like this: #view=timeline&run=ghost&ev=19654&from=19560&to=19760&a=19169&b=19654&lang=zh&theme=dark
const names: Partial<Record<keyof State, string>> = { event: 'ev', category: 'cat', selected: 'sel', query: 'q' }
const numeric = new Set<keyof State>(['event', 'from', 'to', 'a', 'b'])
const flags = new Set<keyof State>(['reserved', 'sampled', 'host', 'table'])
const kept = new Set<keyof State>(['view', 'run', 'lang', 'theme']) // keys that the address always contains

export function fromHash(hash: string): State {
  const given = new URLSearchParams(hash.replace(/^#/, '')),
    out: Record<string, unknown> = { ...initial }
  for (const key of Object.keys(initial) as (keyof State)[]) {
    const text = given.get(names[key] ?? key)
    if (text === null) continue
    if (numeric.has(key)) out[key] = /^\d+$/.test(text) ? Number(text) : null
    else if (flags.has(key)) out[key] = text === '1'
    else if (key === 'selected') out[key] = text.split(',').filter(Boolean)
    else out[key] = text
  }
  const s = out as unknown as State
  if (!shownHere.includes(s.view)) s.view = 'runs'
  if (s.theme !== 'dark') s.theme = 'light'
  if (s.lang !== 'zh') s.lang = 'en'
  if (!['category', 'module', 'phase', 'line', 'holder', 'name'].includes(s.by)) s.by = 'category'
  return s
}

export function toHash(s: State): string {
  const out = new URLSearchParams()
  for (const key of Object.keys(initial) as (keyof State)[]) {
    const v = s[key]
    if (v === null || (!kept.has(key) && v === initial[key])) continue
    out.set(names[key] ?? key, typeof v === 'boolean' ? (v ? '1' : '0') : Array.isArray(v) ? v.join(',') : String(v))
  }
  return '#' + out.toString()
}

type Listener = () => void
const listeners = new Set<Listener>()
export let state = fromHash(location.hash)
let pending = false

const calm = 200 // the shortest time between two changes of the address, in ms
let writing = 0

/** written writes the state into the address. Writing takes part of a frame's time, and a browser refuses to write the
 * address too often. */
function written() {
  clearTimeout(writing)
  writing = 0
  if (location.hash !== toHash(state)) history.replaceState(null, '', toHash(state))
}

/** set changes the state. The next frame updates everything that depends on the state. */
export function set(patch: Partial<State>) {
  state = { ...state, ...patch }
  if (pending) return
  pending = true
  requestAnimationFrame(() => {
    pending = false
    if (!writing) writing = window.setTimeout(written, calm)
    for (const l of listeners) l()
  })
}
export function onChange(l: Listener) {
  listeners.add(l)
}

addEventListener('pagehide', written)

addEventListener('hashchange', (e) => {
  // The reader has gone to another address. A write that is still pending has the previous state, so it is cancelled.
  clearTimeout(writing)
  writing = 0
  const next = fromHash(new URL(e.newURL).hash)
  if (toHash(next) !== toHash(state)) set(next)
})
