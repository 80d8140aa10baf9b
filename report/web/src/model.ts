// The runs of the page, and their decoded data so far.

import {
  device as readDevice,
  type About,
  type BreakdownRun,
  type Device,
  type DeviceMeta,
  type DeviceBreakdown,
  type Documents,
  type OverheadCell,
  type RunRow,
} from './data'
import { seriesOf, pointsOf, type Dimension, type Series } from './series'
import { served } from './source'
import { set, state } from './state'

export interface Run {
  id: string
  label: string
  row: RunRow
  breakdown: BreakdownRun | undefined
  main: DeviceBreakdown | undefined // breakdown of the device with the highest peak
  cell: OverheadCell | undefined
}

export let about: About
export let docs: Documents
export let runs: Run[] = []
const decoded = new Map<number, Device | Promise<void>>()
const series = new Map<string, Series>()

/** pending is true while the page still waits for documents. */
export let pending = false

const deviceKey = (m: DeviceMeta) => `${m.run_id}/${m.rank}/${m.device}/${m.events}`

export function load(a: About, d: Documents, first: boolean) {
  pending = first
  docs = d
  // If the new data has the same devices, the page keeps the decoded blocks and their description.
  if (runs.length && a.devices.map(deviceKey).join() === about.devices.map(deviceKey).join())
    about = { ...a, devices: about.devices }
  else {
    about = a
    decoded.clear()
    series.clear()
  }
  const rows = d.runs?.runs ?? []
  const named = new Map<string, number>()
  for (const r of rows) named.set(r.name, (named.get(r.name) ?? 0) + 1)
  runs = rows.map((row) => {
    const breakdown = d.breakdown?.runs.find((b) => b.run_id === row.run_id)
    const main = breakdown?.devices.reduce<DeviceBreakdown | undefined>(
      (a, b) => (!a || b.allocated_bytes > a.allocated_bytes ? b : a),
      undefined,
    )
    const cell = d.overhead?.cells.find((c) => c.run_ids.includes(row.run_id))
    return { id: row.run_id, label: named.get(row.name) === 1 ? row.name : row.run_id, row, breakdown, main, cell }
  })
}

const find = (name: string) => runs.find((r) => r.label === name || r.id === name)

/** The run that all views show. */
export function current(): Run | undefined {
  return (
    find(state.run) ??
    runs
      .filter((r) => r.main && r.id !== baseline()?.id)
      .sort((a, b) => (b.main?.allocated_bytes ?? 0) - (a.main?.allocated_bytes ?? 0))
      .at(0) ??
    runs.find((r) => r.main) ??
    runs.at(0)
  )
}

export function baseline(): Run | undefined {
  return find(state.base) ?? find(docs.overhead?.baseline ?? '') ?? runs.find((r) => r.main) ?? runs.at(0)
}

const most = 8 // the most runs that are selected by default

export function selected(): Run[] {
  if (state.selected) return runs.filter((r) => state.selected!.includes(r.label))
  const broken = runs.filter((r) => r.main)
  const cells = broken.filter((r) => r.cell?.run_id === r.id)
  return (cells.length ? cells : broken).slice(0, most)
}

export function toggle(r: Run) {
  const now = selected().map((s) => s.label)
  set({ selected: now.includes(r.label) ? now.filter((l) => l !== r.label) : [...now, r.label] })
}

/** The devices of a run for which the page has data. */
export const devicesOf = (r: Run | undefined) =>
  about.devices.map((meta, i) => ({ meta, i })).filter((d) => d.meta.run_id === r?.id)

export function currentDevice() {
  const r = current(),
    all = devicesOf(r)
  return (
    all.find((d) => `${d.meta.rank}/${d.meta.device}` === state.device) ??
    all.find((d) => d.meta.rank === r?.main?.rank && d.meta.device === r.main.device) ??
    all.at(0)
  )
}

export const breakdownOf = (r: Run | undefined, rank: number, device: string) =>
  r?.breakdown?.devices.find((d) => d.rank === rank && d.device === device)

/** Returns the blocks of the current device. While they are being decoded, it returns null. */
export function blocks(): Device | null {
  const at = currentDevice()
  if (!at) return null
  const got = decoded.get(at.i)
  if (got instanceof Promise) return null
  if (got) {
    nearer(at.i, got)
    return got
  }
  decoded.set(
    at.i,
    readDevice(at.i, at.meta).then(
      (d) => {
        decoded.set(at.i, d)
        set({})
      },
      (e: unknown) => {
        failed = String(e)
        set({})
      },
    ),
  )
  return null
}
export let failed = ''

/** arrived waits until the blocks of all requested devices are decoded. */
export const arrived = () => Promise.all<unknown>([...decoded.values()])

const mostExact = 100_000 // if a view has at most this many events, the page asks the server for all of them
let asking = false

/** nearer asks the server for the events in view if the page does not have them all. The view changes only when these
    events arrive. */
function nearer(i: number, d: Device) {
  const { from, to } = state,
    has = d.meta
  if (!served || asking || has.detail !== 'window' || from === null || to === null) return
  const here = from >= has.from && Math.min(to, has.events) <= has.to
  if (here || to - from > mostExact) return
  const margin = (mostExact - (to - from)) >> 1
  const meta = { ...has, from: Math.max(0, from - margin), to: Math.min(has.events, to + margin) }
  asking = true
  readDevice(i, meta)
    .then(
      (near) => {
        about.devices[i] = meta
        decoded.set(i, near)
        series.clear()
        set({ scope: 'exact' })
      },
      (e: unknown) => {
        failed = String(e)
        set({})
      },
    )
    .finally(() => {
      asking = false
    })
}

export function seriesFor(d: Device, by: Dimension, whole: boolean): Series | null {
  const key = `${d.meta.run_id} ${d.meta.rank} ${d.meta.device} ${by} ${String(whole)}`
  const got = series.get(key)
  if (got) return got
  if (series.size > 4) series.clear() // each series takes some MB
  const points = whole || d.meta.detail === 'points' ? pointsOf(d, about.categories) : null
  const made = points ?? (d.kind.length ? seriesOf(d, by, about.categories, peakEvent(d)) : null)
  if (made) series.set(key, made)
  return made
}

/** Returns the event of the peak in the run's breakdown. */
export function peakEvent(d: Device): number {
  const r = runs.find((run) => run.id === d.meta.run_id)
  return breakdownOf(r, d.meta.rank, d.meta.device)?.at.event ?? d.meta.to
}

export const colorOf = (category: string) => about.categories.find((c) => c.name === category)?.color ?? '#cccccc'
