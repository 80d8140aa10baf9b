// timing.mjs DPSIGHT CHROMIUM EXAMPLES [REPETITIONS]: how long a page of 200,000 allocator events takes until it can be
// used, and how many frames a second it draws while the timeline is zoomed and panned. The events are those of a
// recorded run, one time after the other.

import { Schema, Table, tableFromArrays, tableFromIPC, tableToIPC } from 'apache-arrow'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { chromium } from 'playwright-core'

const [dpsight, executablePath, examples, repetitions = '7'] = process.argv.slice(2)
const wanted = 200_000,
  frames = 120,
  run = 'vanilla'

/** tables are those of a device, by their names. */
function tables(bytes) {
  const out = new Map()
  for (let at = 0; at < bytes.length;) {
    const n = bytes.readUInt32LE(at),
      t = tableFromIPC(bytes.subarray(at + 4, at + 4 + n))
    out.set(t.schema.metadata.get('table'), t)
    at += 4 + n
  }
  return out
}

function encoded(all) {
  const parts = []
  for (const [name, t] of all) {
    const named = new Table(
      new Schema(t.schema.fields, new Map([['table', name]])),
      t.batches.map((b) => b),
    )
    const bytes = tableToIPC(named, 'stream'),
      length = Buffer.alloc(4)
    length.writeUInt32LE(bytes.length)
    parts.push(length, bytes)
  }
  return Buffer.concat(parts)
}

const columnsOf = (t) => Object.fromEntries(t.schema.fields.map((f) => [f.name, t.getChild(f.name)]))

/** repeated is a table so many times, with what is changed in each copy. */
function repeated(t, times, change = {}) {
  const columns = columnsOf(t),
    out = {}
  for (const [name, column] of Object.entries(columns)) {
    const values = [...column],
      all = []
    for (let i = 0; i < times; i++) all.push(...(change[name] ? change[name](values, i) : values))
    out[name] = typeof values[0] === 'string' ? all : column.toArray().constructor.from(all)
  }
  return tableFromArrays(out)
}

/** long is a page whose first device has its events so many times. */
function long(html) {
  const about = JSON.parse(/id="about">(.*?)<\/script>/s.exec(html)[1]),
    n = about.devices[0].events,
    times = Math.ceil(wanted / n)
  if (about.devices[0].detail !== 'all') throw new Error(`the page has ${about.devices[0].detail} of ${run}`)
  const part = /(id="device-0">)(.*?)(<\/script>)/s,
    all = tables(gunzipSync(Buffer.from(part.exec(html)[2], 'base64')))
  // begin is how much later a row begins than the one before, and life 0 reaches to the end: of all copies but the last,
  // to the next one.
  const begin = [...all.get('pieces').getChild('begin')],
    life = [...all.get('pieces').getChild('life')]
  let at = 0
  const begins = begin.map((d) => (at += d))
  const starts = Int32Array.from(Array.from({ length: times }, (_, i) => begins.map((b) => b + i * n)).flat())
  const pieces = columnsOf(all.get('pieces')),
    copies = (c) => c.toArray().constructor.from(Array.from({ length: times }, () => [...c]).flat())
  all.set(
    'pieces',
    tableFromArrays({
      kind: copies(pieces.kind),
      begin: starts.map((b, k) => (k ? b - starts[k - 1] : b)),
      life: Uint32Array.from(
        Array.from({ length: times }, (_, i) => life.map((v, k) => v || (i < times - 1 ? n - begins[k] : 0))).flat(),
      ),
      address: copies(pieces.address),
      next: copies(pieces.next),
    }),
  )
  const later = (values, i) => values.map((v) => v + i * n)
  for (const name of ['phases', 'steps']) all.set(name, repeated(all.get(name), times, { begin: later, end: later }))
  for (const name of ['reserved', 'segments']) all.set(name, repeated(all.get(name), times, { event: later }))
  all.set('times', repeated(all.get('times'), times))
  about.devices[0].events = about.devices[0].to = n * times
  return {
    events: n * times,
    html: html
      .replace(part, (_, a, b, c) => a + gzipSync(encoded(all)).toString('base64') + c)
      .replace(
        /(id="about">)(.*?)(<\/script>)/s,
        (_, a, b, c) => a + JSON.stringify(about).replaceAll('<', '\\u003c') + c,
      ),
  }
}

const dir = mkdtempSync(join(tmpdir(), 'dpsight-page-'))
const file = join(dir, 'page.html')
execFileSync(dpsight, ['report', run, '--store', join(examples, 'headline'), '--html', file], { stdio: 'ignore' })
const { events, html } = long(readFileSync(file, 'utf8'))
writeFileSync(file, html)

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
const usable = [],
  rates = [],
  longest = []
for (let i = 0; i < Number(repetitions); i++) {
  const p = await browser.newPage({ viewport: { width: 1440, height: 900 } })
  p.on('pageerror', (e) => {
    throw e
  })
  await p.addInitScript(() => {
    const look = () => {
      if (document.querySelector('#cursor [data-n=allocated]')) globalThis.usable = performance.now()
      else requestAnimationFrame(look)
    }
    requestAnimationFrame(look)
  })
  await p.goto(`file://${file}#view=timeline&theme=light&lang=en`)
  await p.waitForFunction(() => globalThis.usable, undefined, { timeout: 120_000 })
  usable.push(await p.evaluate(() => globalThis.usable))
  const times = await p.evaluate(async (n) => {
    const next = () => new Promise((done) => requestAnimationFrame(done))
    const out = [],
      keys = ['w', 'd', 'w', 'a', 's', 'd', 's', 'a']
    await next()
    let before = await next()
    for (let k = 0; k < n; k++) {
      document.body.dispatchEvent(new KeyboardEvent('keydown', { key: keys[k % keys.length], bubbles: true }))
      const now = await next()
      out.push(now - before)
      before = now
    }
    return out
  }, frames)
  const all = times.reduce((a, b) => a + b, 0)
  rates.push((frames / all) * 1000)
  longest.push(Math.max(...times))
  await p.close()
}
await browser.close()

const said = (list, digits) => {
  const s = list.slice().sort((a, b) => a - b)
  return `${s[s.length >> 1].toFixed(digits)} (${s[0].toFixed(digits)}–${s[s.length - 1].toFixed(digits)})`
}
console.log(
  `${events} events, ${(statSync(file).size / 1e6).toFixed(1)} MB, ${repetitions} repetitions: median (lowest–highest)`,
)
console.log(`usable after ${said(usable, 0)} ms`)
console.log(`${said(rates, 1)} frames a second, ${frames} frames of zoom and pan each`)
console.log(`longest frame ${said(longest, 0)} ms`)
rmSync(dir, { recursive: true })
