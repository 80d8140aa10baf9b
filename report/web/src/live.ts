// The state of the runs that are being recorded, as a server sends it.

import { tablesOf } from './data'
import { asked, served } from './source'

export interface LiveDevice {
  device: number
  allocated_bytes: number
  reserved_bytes: number
  peak_allocated_bytes: number
  peak_reserved_bytes: number
  peak_step: number
  points: {
    from: Float64Array
    ms: Float64Array
    to: Float64Array
    step: Int32Array
    allocated: Float64Array
    low: Float64Array
    reserved: Float64Array
    counters: Uint8Array
  }
}
export interface LiveProcess {
  rank: number
  pid: number
  steps: number
  phase: string
  drain_ns: number
  drains: number
  drain_spent_ns: number
  events: number
  recording: boolean
  median_step_ns: number
  last_step_ns: number
  devices: LiveDevice[]
  times: { step: Int32Array; end: Float64Array; wall: Float64Array; recorded: Uint8Array }
}
export interface LiveFinding {
  kind: string
  step: number
  from: number
  to: number
}
export interface LiveRun {
  run_id: string
  name: string
  predicted: boolean
  bare: boolean
  start_ns: number
  now_ns: number
  ended: boolean
  status: string
  planned: number
  limit_bytes: number
  gpu: string
  processes: LiveProcess[]
  findings: LiveFinding[]
  trouble: string
  samples: { ms: Float64Array; bytes: Float64Array }
  host: { ms: Float64Array; bytes: Float64Array }
}
export interface LiveRow {
  run_id: string
  name: string
  ended: boolean
}

async function liveRun(id: string): Promise<LiveRun> {
  const tables = tablesOf(await asked(`live/run/${encodeURIComponent(id)}`))
  const floats = (table: string, name: string) => tables.get(table)!.getChild(name)!.toArray() as Float64Array
  const wholes = (table: string, name: string) => tables.get(table)!.getChild(name)!.toArray() as Int32Array
  const bits = (table: string, name: string) => tables.get(table)!.getChild(name)!.toArray() as Uint8Array
  const run = JSON.parse(String(tables.get('run')!.getChild('json')!.get(0))) as LiveRun
  run.processes.forEach((p, i) => {
    const steps = `steps ${i}`
    p.times = {
      step: wholes(steps, 'step'),
      end: floats(steps, 'end_ms'),
      wall: floats(steps, 'wall_ms'),
      recorded: bits(steps, 'recorded'),
    }
    p.devices.forEach((d, k) => {
      const points = `points ${i} ${k}`
      d.points = {
        from: floats(points, 'from_ms'),
        ms: floats(points, 'ms'),
        to: floats(points, 'to_ms'),
        step: wholes(points, 'step'),
        allocated: floats(points, 'allocated'),
        low: floats(points, 'low'),
        reserved: floats(points, 'reserved'),
        counters: bits(points, 'counters'),
      }
    })
  })
  run.samples = { ms: floats('samples', 'ms'), bytes: floats('samples', 'bytes') }
  run.host = { ms: floats('host', 'ms'), bytes: floats('host', 'bytes') }
  return run
}

const soon = 500 // ms between two requests; the server takes about a millisecond for each

/** The server's last answers. */
export const live = {
  rows: [] as LiveRow[],
  run: null as LiveRun | null,
  trouble: '',
  paused: false,
  wanted: '', // id of the run that the reader looks at; empty means the newest
}

/** follow asks the server again and again which runs are being recorded, as long as the page is open. watched says
 * whether the page shows the Live view. follow calls changed when the answer is new, and ended when the tables of an
 * ended run are ready. */
export function follow(watched: () => boolean, changed: () => void, ended: () => void) {
  if (!served) return
  let version = -1
  const ask = async () => {
    if (document.hidden || live.paused) return
    try {
      const said = JSON.parse(new TextDecoder().decode(await asked('live/runs'))) as {
        version: number
        runs: LiveRow[]
      }
      const before = live.rows.map((r) => `${r.run_id} ${r.ended}`).join()
      live.rows = said.runs
      if (version >= 0 && said.version !== version) ended()
      version = said.version
      if (watched()) {
        const id = live.rows.find((r) => r.run_id === live.wanted)?.run_id ?? live.rows.at(-1)?.run_id
        live.run = id === undefined ? null : await liveRun(id)
        changed()
      } else if (before !== live.rows.map((r) => `${r.run_id} ${r.ended}`).join()) changed()
      live.trouble = ''
    } catch (e) {
      live.trouble = e instanceof Error ? e.message : String(e)
      changed()
    }
  }
  const again = () => {
    void ask().finally(() => setTimeout(again, soon))
  }
  again()
}
