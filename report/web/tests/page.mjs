// page.mjs DPSIGHT CHROMIUM EXAMPLES OUT: writes pages of recorded examples with dpsight, and drives them in Chromium.
// Numbers on the page are compared with what "analyze … --format json" prints; screenshots lie in OUT.

import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { chromium } from 'playwright-core'

const [dpsight, executablePath, examples, out] = process.argv.slice(2)
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const views = ['runs', 'breakdown', 'timeline', 'blocks', 'modules', 'compare', 'findings', 'phases', 'proof']
let failures = 0
const fail = (text) => {
  failures++
  console.log('FAIL ' + text)
}
const equal = (what, got, want) => {
  if (got !== want) fail(`${what}: the page has ${JSON.stringify(got)}, want ${JSON.stringify(want)}`)
}
const run = (...args) => execFileSync(dpsight, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 1 << 28 })
const json = (store, ...args) => JSON.parse(run(...args, '--store', store, '--format', 'json'))
const mibs = (bytes) => {
  if (bytes !== 0 && Math.abs(bytes) < 2 ** 20 / 100) return (bytes < 0 ? '−' : '') + '<0.01'
  return (bytes / 2 ** 20).toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 }).replace('-', '−')
}

/** made is a copy of an example with its tables, and its page. */
function made(name, change) {
  const store = join(out, name)
  cpSync(join(examples, name.replace(/^hostile-/, '')), store, { recursive: true })
  change?.(store)
  if (name !== 'headline') run('ingest', store)
  run('report', '--store', store, '--html', join(out, `${name}.html`))
  return { name, store, file: join(out, `${name}.html`) }
}

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })

/** open gives a page that watches: any request, error or message of the console is a failure. */
async function open(page, hash, { width = 1440, height = 900 } = {}) {
  const p = await browser.newPage({ viewport: { width, height } })
  p.on('console', (m) => ['error', 'warning'].includes(m.type()) && fail(`${page.name} ${hash}: the console says ${m.text()}`))
  p.on('pageerror', (e) => fail(`${page.name} ${hash}: ${e.stack}`))
  p.on('request', (r) => /^(file|data|blob):/.test(r.url()) || fail(`${page.name} ${hash}: a request for ${r.url()}`))
  await p.goto(`file://${page.file}#${hash}`)
  await p.waitForSelector('#answer', { timeout: 20_000 })
  return p
}

async function look(page, hash, size, { audit = false } = {}) {
  const p = await open(page, hash, size)
  const name = `${page.name}-${hash.match(/view=(\w+)/)[1]}-${hash.includes('dark') ? 'dark' : 'light'}-${size.width}`
  await p.waitForTimeout(250)
  const wide = await p.evaluate(() => document.documentElement.scrollWidth - innerWidth)
  if (wide > 0) fail(`${name} is ${wide} pixels wider than the window`)
  if ((await p.locator('#answer').textContent()).length < 8) fail(`${name} has no answer`)
  if (audit) {
    await p.evaluate(axe)
    const found = await p.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }))
    for (const v of found.violations) {
      if (['serious', 'critical'].includes(v.impact)) fail(`${name}: ${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(' | ')}`)
    }
  }
  await p.screenshot({ path: join(out, `${name}.png`), fullPage: true })
  await p.close()
}

/** numbers reads those of each run from the page. */
async function numbers(page) {
  const runs = json(page.store, 'runs').runs, breakdown = json(page.store, 'analyze', 'breakdown').runs
  const names = runs.map((r) => r.name), labelOf = (r) => (names.filter((n) => n === r.name).length === 1 ? r.name : r.run_id)
  const p = await open(page, 'view=runs&theme=light&lang=en')
  for (const r of runs) {
    const row = p.locator(`tr[data-run="${r.run_id}"]`)
    equal(`${r.name}: peak in the table`, await row.locator('[data-n=peak]').textContent(), r.peak_bytes === null ? '—' : mibs(r.peak_bytes) + ' MiB')
  }
  await p.close()
  let compared = 0
  for (const r of breakdown) {
    const d = r.devices.reduce((a, b) => (!a || b.allocated_bytes > a.allocated_bytes ? b : a), undefined)
    if (!d || compared >= 4) continue
    compared++
    const at = (view, more = '') => `view=${view}&run=${encodeURIComponent(labelOf(r))}&theme=light&lang=en${more}`
    const b = await open(page, at('breakdown'))
    if (!(await b.locator('#answer').textContent()).includes(`${mibs(d.allocated_bytes)} MiB`)) fail(`${r.name}: its peak is not in the answer`)
    const shown = await b.locator('aside .list').first().evaluate((list) => {
      const rows = {}
      let name = ''
      for (const e of list.children) {
        if (e.classList.contains('nm')) name = e.textContent
        if (e.classList.contains('num')) rows[name] = e.textContent
      }
      return rows
    })
    for (const c of d.categories) {
      if (c.bytes) equal(`${r.name}: ${c.category}`, shown[c.category.replaceAll('_', ' ')], mibs(c.bytes))
    }
    await b.close()
    const t = await open(page, at('timeline', `&ev=${d.at.event}`))
    await t.waitForSelector('[data-n=allocated]', { timeout: 20_000 })
    equal(`${r.name}: allocated at the peak's event, summed from blocks`, await t.locator('[data-n=allocated]').textContent(), `${mibs(d.allocated_bytes)} MiB`)
    await t.close()
  }
  if (!compared && page.name !== 'lora') fail(`${page.name}: no run was compared`) // all runs of lora are bare
}

/** keys drives the timeline as a reader would. */
async function keys(page) {
  const p = await open(page, 'view=runs&theme=light&lang=en')
  await p.keyboard.press('3')
  await p.waitForSelector('#timeline')
  await p.keyboard.press('p')
  await p.waitForTimeout(120)
  const event = async () => Number(new URLSearchParams((await p.evaluate(() => location.hash)).slice(1)).get('ev'))
  const peak = await event()
  await p.keyboard.press('ArrowRight')
  await p.waitForTimeout(120)
  equal('the cursor after an arrow', await event(), peak + 1)
  await p.keyboard.press('[')
  await p.keyboard.press('ArrowRight')
  await p.keyboard.press(']')
  await p.waitForSelector('#grew')
  await p.keyboard.press('l')
  await p.waitForTimeout(120)
  equal('the language', await p.evaluate(() => document.documentElement.lang), 'zh-Hans')
  await p.keyboard.press('t')
  await p.waitForTimeout(120)
  equal('the theme', await p.evaluate(() => document.documentElement.dataset.theme), 'dark')
  for (const kind of ['SVG', 'PNG', 'CSV']) {
    const [download] = await Promise.all([p.waitForEvent('download', { timeout: 20_000 }), p.getByRole('button', { name: kind, exact: true }).click()])
    const path = join(out, `saved.${kind.toLowerCase()}`)
    await download.saveAs(path)
    if (readFileSync(path).length < 500) fail(`${kind} is empty`)
  }
  await p.keyboard.press('Shift+T')
  await p.waitForSelector('table')
  await p.close()
}

/** frames times zooming and panning over a run's events. */
async function frames(page, label) {
  const p = await open(page, `view=timeline&run=${label}&theme=light&lang=en`)
  await p.waitForSelector('#timeline')
  const times = await p.evaluate(async () => {
    const next = () => new Promise((done) => requestAnimationFrame((t) => done(t)))
    const out = []
    await next()
    for (let i = 0; i < 40; i++) {
      document.body.dispatchEvent(new KeyboardEvent('keydown', { key: i % 4 === 3 ? 'd' : i < 20 ? 'w' : 's', bubbles: true }))
      const begin = performance.now()
      await next()
      await next()
      out.push(performance.now() - begin)
    }
    return out.sort((a, b) => a - b)
  }).catch((e) => fail(`frames: ${e}`))
  if (times) console.log(`${label}: a key and its frame take ${times[20].toFixed(1)} ms (median), ${times[39].toFixed(1)} ms at most, of 40`)
  await p.close()
}

mkdirSync(out, { recursive: true })
const hostileName = '<script>globalThis.hacked=1</script>"\'&\u202e' + 'x'.repeat(200)
const pages = ['headline', 'oom', 'lora', 'stacks'].map((name) => made(name))
const hostile = made('hostile-stacks', (store) => {
  for (const id of readdirSync(store)) {
    const file = join(store, id, 'run.json')
    try {
      writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), name: hostileName + id }))
    } catch (e) {
      if (e.code !== 'ENOENT' && e.code !== 'ENOTDIR') throw e
    }
  }
})
for (const page of pages) await numbers(page)
for (const view of views) {
  await look(pages[0], `view=${view}&theme=light&lang=en`, { width: 1440, height: 900 }, { audit: true })
  await look(pages[0], `view=${view}&theme=dark&lang=zh`, { width: 360, height: 740 }, { audit: true })
  for (const page of pages.slice(1)) await look(page, `view=${view}&theme=light&lang=en`, { width: 1440, height: 900 })
}
await look(pages[0], 'view=timeline&theme=dark&lang=en', { width: 2560, height: 1440 })
await look(pages[0], 'view=breakdown&run=ghost-bare&theme=light&lang=en', { width: 1440, height: 900 })
for (const view of ['runs', 'breakdown', 'compare', 'proof']) {
  const p = await open(hostile, `view=${view}&theme=light&lang=en`, { width: 360 })
  if (await p.evaluate(() => globalThis.hacked)) fail(`${view}: a name was run`)
  if (!(await p.locator('body').textContent()).includes('<script>globalThis.hacked=1</script>"\'&\\u202e')) fail(`${view}: the name is not shown as text`)
  await p.close()
}
await keys(pages[0])
await frames(pages[0], 'bk')
await browser.close()
console.log(failures ? `${failures} failures` : `the page holds: ${readdirSync(out).filter((f) => f.endsWith('.png')).length} pictures in ${out}`)
process.exit(failures ? 1 : 0)
