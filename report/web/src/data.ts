// The page's data: the documents that dpsight's commands print, and the blocks of devices as Arrow streams.

import { tableFromIPC, type Table } from 'apache-arrow'
import { Clock } from './clock'
import { aboutPart, devicePart, documentsPart } from './source'

export interface Moment {
  event: number
  step: number | null
  phase: string | null
}
export interface Identity {
  run_id: string
  name: string
  status: string
  reason?: string
  source: string
  profile: string | null
  params: Record<string, unknown>
  confidence?: string
  /** Bounds of a peak that is not known exactly, since recording began late and some sizes are unknown. */
  peak_low_bytes?: number
  peak_high_bytes?: number
}
export interface RunRow extends Identity {
  suite: string | null
  trial?: boolean
  peak_bytes: number | null
  peak_reserved_bytes: number | null
  step_ms: number | null
  samples_per_s: number | null
  gpu: string | null
  started: string | null
  commit?: string | null
  failed_requests: number
  warnings: string[]
}
export interface CategoryBytes {
  category: string
  bytes: number
  held_bytes: number
  shared_bytes: number
  tagged_bytes: number
  lifetime_bytes: number
  phase_only_bytes: number
  blocks: number
  max_bytes: number
}
export interface Conservation {
  verdict: string
  residue_bytes: number
  ambiguous_tags: number
  reason: string
}
export interface DeviceBreakdown {
  device: string
  rank: number
  at: Moment
  allocated_bytes: number
  reserved_bytes: number | null
  peak_reserved_bytes: number | null
  torch_peak_allocated_bytes: number | null
  categories: CategoryBytes[]
  conservation: Conservation
}
export interface BreakdownRun extends Identity {
  devices: DeviceBreakdown[]
}
export interface Finding {
  id: string
  title: string
  place: {
    device: string | null
    rank: number | null
    at: Moment | null
    phase: string | null
    module: string | null
    line: { file: string; line: number; function: string; source?: string } | null
  }
  holder: { path: string } | null
  bytes: number | null
  ms: number | null
  share: number | null
  of?: string
  sentence: string
  change?: string
  saving: { bytes: number | null; ms: number | null; of: string; assumption?: string } | null
  confidence: string
  edits?: { file: string; line: number; source: string }[]
}
export interface FindingsRun extends Identity {
  findings: Finding[]
  warnings: string[]
}
export interface Rung {
  rung: string
  bytes: number | null
}
export interface LadderMoment {
  at: string
  devices?: unknown[]
  rungs: Rung[]
  event?: number | null
}
export interface LadderRun extends Identity {
  gpus: { gpu: string; uuid: string; total_bytes: number | null; moments: LadderMoment[] }[]
}
export interface Interval {
  median: number
  low: number
  high: number
  n: number
  clock: string
}
export interface PhaseRow {
  device: string
  rank: number
  phase: string
  occurrences: number
  allocated_begin_bytes: number | null
  allocated_end_bytes: number | null
  peak_bytes: number | null
  peak_step: number | null
  peak_percent: number | null
  gpu_ms: Interval | null
  wall_ms: Interval | null
  step_percent: number | null
}
export interface PhasesRun extends Identity {
  phases: PhaseRow[]
}
export interface CostRun extends Identity {
  peak_bytes: number | null
  torch_peak_bytes: number | null
  peak_reserved_bytes: number | null
  verdict: string | null
  events: number | null
  missing_events: number | null
  residue_bytes: number | null
  bare_step_ms: number | null
  instrumented_step_ms: number | null
  instrument_ms: number | null
  instrument_share: number | null
  bare_steps: number | null
  instrumented_steps: number | null
  recorded_steps: number | null
  windows: number | null
  drain_ms: number | null
  drain_share: number | null
  collector_share: number | null
}
export interface ModuleTimeRow {
  module?: string | null
  key?: string | null
  ms?: number
  step_ms?: number
  modules?: number
}
export interface TimeRun extends Identity {
  ranks: { rank: number; step_ms: number | null; rows: Record<string, unknown>[] }[]
}
export interface ExplainModule {
  module: string | null
  modules: number
  from_bytes: number
  to_bytes: number
  delta_bytes: number
}
export interface ExplainCategory {
  category: string
  from_bytes: number
  to_bytes: number
  delta_bytes: number
  modules: ExplainModule[] | null
}
export interface ExplainPhase {
  phase: string
  from_ms: number | null
  to_ms: number | null
  delta_ms: number
}
export interface ExplainTime {
  module: string | null
  modules: number
  from_ms: number
  to_ms: number
  delta_ms: number
}
export interface Explanation {
  from: string
  to: string
  peak_delta_bytes: number | null
  categories: ExplainCategory[]
  step_delta_ms: number | null
  phases: ExplainPhase[] | null
  module_times: ExplainTime[] | null
  sentences: string[]
  step_sentences: string[]
  warnings: string[]
}
export interface OverheadCell extends Identity {
  label: string
  run_ids: string[]
  peak_bytes: number | null
  peak_reserved_bytes: number | null
  step_ms: Interval | null
}

export interface Documents {
  runs?: { runs: RunRow[] }
  overhead?: { baseline: string; cells: OverheadCell[] }
  breakdown?: { runs: BreakdownRun[] }
  findings?: { runs: FindingsRun[] }
  ladder?: { runs: LadderRun[] }
  phases?: { runs: PhasesRun[] }
  cost?: { runs: CostRun[] }
  time?: { runs: TimeRun[] }
  [explanation: `explain ${string}`]: Explanation | undefined
}
export interface DeviceMeta {
  run_id: string
  device: string
  rank: number
  events: number
  detail: 'none' | 'points' | 'window' | 'all'
  from: number
  to: number
}
export interface About {
  title: string
  categories: { name: string; color: string }[]
  devices: DeviceMeta[]
  missing: Record<string, string | undefined>
  revisions: Record<string, string | undefined>
}

export const about = async (first: boolean) => (await aboutPart(first)) as About
export const documents = async (first: boolean) => (await documentsPart(first)) as Documents

/** Kinds has, in columns, the properties that all pieces of the same kind share. A name is an index into texts. */
export interface Kinds {
  requested: Float64Array
  slack: Float64Array
  category: Uint8Array
  evidence: Int8Array
  module: Uint32Array
  role: Uint32Array
  name: Uint32Array
  holder: Uint32Array
  line: Uint32Array
  phase: Uint32Array
}
export interface Device {
  meta: DeviceMeta
  kind: Uint32Array
  begin: Uint32Array
  end: Uint32Array // 0xffffffff means the end of the recording
  address: Uint32Array
  next: Uint8Array
  kinds: Kinds
  addresses: Float64Array
  texts: string[]
  sources: string[]
  phases: { step: Int32Array; begin: Uint32Array; end: Uint32Array; gpu: Float64Array; name: string[] }
  steps: {
    step: Int32Array
    begin: Uint32Array
    end: Uint32Array
    gpu: Float64Array
    wall: Float64Array
    peak: Float64Array
    recorded: Uint8Array
    instrumented: Uint8Array
  }
  reserved: { event: Uint32Array; bytes: Float64Array }
  segments: { event: Uint32Array; action: Uint8Array; address: Float64Array; bytes: Float64Array }
  failed: { event: Uint32Array; bytes: Float64Array }
  clock: Clock | null // null if the times of events are unknown
  samples: { us: Float64Array; used: Float64Array }
  host: { us: Float64Array; resident: Float64Array; pinned: Float64Array } // -1 in pinned means unknown
  marks: { event: Uint32Array; label: string[] }
  points: { event: Uint32Array; from: Uint32Array; to: Uint32Array; bytes: Map<string, Float64Array> } | null
}
export const forever = 0xffffffff

const column = <T>(t: Table | undefined, name: string, empty: T): T =>
  (t?.getChild(name)?.toArray() as T | undefined) ?? empty
const words = (t: Table | undefined, name: string): string[] => {
  const c = t?.getChild(name)
  return c ? Array.from(c, (v) => String(v)) : []
}

/** tablesOf decodes successive Arrow streams. The length of each stream stands before the stream. */
export function tablesOf(bytes: Uint8Array): Map<string, Table> {
  const tables = new Map<string, Table>()
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (let at = 0; at < bytes.length;) {
    const n = view.getUint32(at, true)
    const table = tableFromIPC(bytes.slice(at + 4, at + 4 + n))
    tables.set(table.schema.metadata.get('table') ?? '', table)
    at += 4 + n
  }
  return tables
}

/** summed returns the numbers whose differences from the previous number are given. */
function summed(differences: Int32Array): Uint32Array {
  const out = Uint32Array.from(differences)
  for (let k = 1; k < out.length; k++) out[k] += out[k - 1]
  return out
}

/** device decodes the blocks of the i-th device, as far as the page's file or the server has them. */
export async function device(i: number, meta: DeviceMeta): Promise<Device> {
  const bytes = meta.detail === 'none' ? new Uint8Array() : await devicePart(i, meta.from, meta.to)
  const tables = tablesOf(bytes)
  const u32 = () => new Uint32Array(),
    f64 = () => new Float64Array(),
    u8 = () => new Uint8Array()
  const pieces = tables.get('pieces'),
    kinds = tables.get('kinds'),
    phases = tables.get('phases')
  const steps = tables.get('steps'),
    reserved = tables.get('reserved'),
    segments = tables.get('segments')
  const failed = tables.get('failed'),
    samples = tables.get('samples'),
    points = tables.get('points'),
    host = tables.get('host'),
    marks = tables.get('marks')
  const begin = summed(column(pieces, 'begin', new Int32Array()))
  const life = column(pieces, 'life', u32()),
    end = new Uint32Array(life.length)
  for (let k = 0; k < end.length; k++) end[k] = life[k] ? begin[k] + life[k] : forever
  const times = tables.get('times'),
    us: ArrayLike<number> = column<Int32Array | Float64Array>(times, 'us', new Int32Array()),
    timed = column<Int32Array | null>(times, 'event', null)
  return {
    meta,
    begin,
    end,
    clock: us.length ? new Clock(us, timed && summed(timed)) : null,
    kind: column(pieces, 'kind', u32()),
    address: column(pieces, 'address', u32()),
    next: column(pieces, 'next', u8()),
    kinds: {
      requested: column(kinds, 'requested', f64()),
      slack: column(kinds, 'slack', f64()),
      category: column(kinds, 'category', u8()),
      evidence: column(kinds, 'evidence', new Int8Array()),
      module: column(kinds, 'module', u32()),
      role: column(kinds, 'role', u32()),
      name: column(kinds, 'name', u32()),
      holder: column(kinds, 'holder', u32()),
      line: column(kinds, 'line', u32()),
      phase: column(kinds, 'phase', u32()),
    },
    addresses: column(tables.get('addresses'), 'address', f64()),
    texts: words(tables.get('texts'), 'text'),
    sources: words(tables.get('texts'), 'source'),
    phases: {
      step: column(phases, 'step', new Int32Array()),
      begin: column(phases, 'begin', u32()),
      end: column(phases, 'end', u32()),
      gpu: column(phases, 'gpu_ns', f64()),
      name: words(phases, 'phase'),
    },
    steps: {
      step: column(steps, 'step', new Int32Array()),
      begin: column(steps, 'begin', u32()),
      end: column(steps, 'end', u32()),
      gpu: column(steps, 'gpu_ns', f64()),
      wall: column(steps, 'wall_ns', f64()),
      peak: column(steps, 'peak', f64()),
      recorded: column(steps, 'recorded', u8()),
      instrumented: column(steps, 'instrumented', u8()),
    },
    reserved: { event: column(reserved, 'event', u32()), bytes: column(reserved, 'bytes', f64()) },
    segments: {
      event: column(segments, 'event', u32()),
      action: column(segments, 'action', u8()),
      address: column(segments, 'address', f64()),
      bytes: column(segments, 'bytes', f64()),
    },
    failed: { event: column(failed, 'event', u32()), bytes: column(failed, 'bytes', f64()) },
    samples: { us: column(samples, 'us', f64()), used: column(samples, 'used', f64()) },
    host: {
      us: column(host, 'us', f64()),
      resident: column(host, 'resident', f64()),
      pinned: column(host, 'pinned', f64()),
    },
    marks: { event: column(marks, 'event', u32()), label: words(marks, 'label') },
    points: points
      ? {
          event: column(points, 'event', u32()),
          from: column(points, 'from', u32()),
          to: column(points, 'to', u32()),
          bytes: new Map(
            points.schema.fields
              .filter((f) => !['event', 'from', 'to'].includes(f.name))
              .map((f) => [f.name, column(points, f.name, f64())]),
          ),
        }
      : null,
  }
}
