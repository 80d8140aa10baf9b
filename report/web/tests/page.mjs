// page.mjs DPSIGHT CHROMIUM EXAMPLES OUT [main|all [keep]]: writes pages of recorded examples with dpsight, and drives them in
// Chromium. Numbers on the page are compared with what "analyze … --format json" prints; pictures lie in OUT. With main,
// pictures are taken at two of the four widths; all else is the same. With keep, those pictures that are kept are written anew.

import { execFile } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  statfsSync,
  writeFileSync,
} from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Pictures } from './pictures.mjs'
import { audited, axe, bounded, go, launched, quiet, repeated, watched, whole } from './tab.mjs'

const [dpsight, executablePath, examples, out] = process.argv.slice(2, 6).map((path) => resolve(path))
const [part = 'all', keep] = process.argv.slice(6)
const here = dirname(fileURLToPath(import.meta.url)),
  checkout = process.cwd()
// The script of one recording lies there: dpsight looks for what its lines say in the working folder.
process.chdir(join(here, 'testdata'))
const views = ['runs', 'breakdown', 'timeline', 'blocks', 'modules', 'compare', 'findings', 'phases', 'proof']
const desk = { width: 1440, height: 900 },
  phone = { width: 360, height: 740 },
  laptop = { width: 1280, height: 800 },
  wall = { width: 2560, height: 1440 }
const pictured = part === 'main' ? [desk, phone] : [desk, phone, laptop, wall]
const english = 'theme=light&lang=en'

let failures = 0
function fail(text) {
  failures++
  console.log('FAIL ' + text)
}
function equal(what, got, want) {
  if (got !== want) fail(`${what}: the page has ${JSON.stringify(got)}, want ${JSON.stringify(want)}`)
}

/** run gives what dpsight prints. Its error has all that it said. */
async function run(...args) {
  try {
    return (await promisify(execFile)(dpsight, args, { encoding: 'utf8', maxBuffer: 1 << 28 })).stdout
  } catch (e) {
    throw new Error(`dpsight ${args.join(' ')}: ${e.message}\n${e.stdout ?? ''}`, { cause: e })
  }
}
const json = async (store, ...args) => JSON.parse(await run(...args, '--store', store, '--format', 'json'))

function mibs(bytes) {
  if (bytes !== 0 && Math.abs(bytes) < 2 ** 20 / 100) return (bytes < 0 ? '−' : '') + '<0.01'
  const text = (bytes / 2 ** 20).toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 })
  return text.replace('-', '−')
}
const mib = (bytes) => (bytes === null || bytes === undefined ? '—' : `${mibs(bytes)} MiB`)
const signedMib = (bytes) => (bytes > 0 ? '+' : '') + mib(bytes)
const one = (v) => v.toLocaleString('en-US', { minimumFractionDigits: 1, maximumFractionDigits: 1 }).replace('-', '−')
const ms = (v) => (v === null || v === undefined ? '—' : `${one(v)} ms`)
const count = (v) => v.toLocaleString('en-US')

const runIDs = (store) => readdirSync(store).filter((id) => existsSync(join(store, id, 'run.json')))

/** changed rewrites the manifest of a run. */
function changed(folder, change) {
  const file = join(folder, 'run.json')
  writeFileSync(file, JSON.stringify(change(JSON.parse(readFileSync(file, 'utf8')))))
}

/** page is a store with its page. Of a store whose tables are there nothing is ingested. */
async function page(name, store, { ingested = false, select = [] } = {}) {
  if (!ingested) await run('ingest', store)
  const file = join(out, `${name}.html`)
  await run('report', ...select, '--store', store, '--html', file)
  return { name, store, file, select }
}

/** scratch has the stores. In memory, where there is room: ingest waits for the disk with each of its files. */
const memory = '/dev/shm'
const roomy = existsSync(memory) && statfsSync(memory).bavail * statfsSync(memory).bsize > 1 << 28
const scratch = mkdtempSync(join(roomy ? memory : tmpdir(), 'dpsight-page-'))

function copied(name, from = join(examples, name)) {
  const store = join(scratch, name)
  cpSync(from, store, { recursive: true })
  return store
}

const hostileName = '<script>globalThis.hacked=1</script>"\'&\u202e' + 'x'.repeat(200)

function hostile() {
  const store = copied('hostile', join(examples, 'stacks'))
  for (const id of runIDs(store)) changed(join(store, id), (d) => ({ ...d, name: hostileName + id }))
  return page('hostile', store)
}

/** many is a store of 200 runs: copies of recorded ones, each with a name and a parameter of its own. */
function many() {
  const store = join(scratch, 'many')
  mkdirSync(store)
  const sources = ['mlp', 'lora'].flatMap((s) =>
    runIDs(join(examples, s)).map((id) => ({ id, from: join(examples, s, id) })),
  )
  for (let i = 0; i < 200; i++) {
    const { id, from } = sources[i % sources.length]
    const runID = id.replace(/[0-9a-f]{6}$/, String(100_000 + i))
    cpSync(from, join(store, runID), { recursive: true })
    changed(join(store, runID), (d) => ({
      ...d,
      run_id: runID,
      name: `${d.name}-${i}`,
      params: { ...d.params, copy: i },
      ...(i % 10 ? {} : { source: 'predicted', profile: 'h200' }),
    }))
  }
  return page('many', store)
}

/** fit is a store as predict --fit --vary leaves it: predicted runs of one parameter's values, two of which do not fit. */
async function fit() {
  const store = join(scratch, 'fit')
  mkdirSync(store)
  const sources = runIDs(join(examples, 'mlp')).map((id) => ({ id, from: join(examples, 'mlp', id) }))
  for (const [k, { id, from }] of sources.slice(0, 2).entries()) {
    for (const [i, batch] of [8, 16, 32, 64].entries()) {
      const runID = id.replace(/[0-9a-f]{6}$/, String(200_000 + 10 * k + i))
      cpSync(from, join(store, runID), { recursive: true })
      changed(join(store, runID), (d) => ({
        ...d,
        run_id: runID,
        name: `${d.name}-batch-${batch}`,
        params: { ...d.params, batch_size: batch, physical_batch_size: batch },
        suite: { ...d.suite, key: `${d.name}-${batch}`, search: true },
        source: 'predicted',
        profile: 'rtx-4090',
        status: batch === 64 ? 'oom' : d.status,
      }))
    }
  }
  return page('fit', store)
}

/** details are pages whose run has more events than there is room for. */
async function details() {
  const go = ['test', '-count=1', '-run', 'TestDetailOfAPage', './report/selected']
  const env = { ...process.env, DPSIGHT_TEST_PAGES: scratch }
  await promisify(execFile)('go', go, { env, cwd: checkout })
  const store = join(examples, 'headline')
  return ['window', 'points'].map((detail) => ({
    name: detail,
    store,
    file: join(scratch, `${detail}.html`),
    select: [],
  }))
}

// New tabs open in the last browser. Each entry is a promise.
const browsers = [launched(executablePath)]
const pictures = new Pictures(await browsers[0], join(here, 'pictures'), keep === 'keep')
/** Of one store pictures are kept, of each view: wide and light, narrow and dark. */
const keptOf = (of, size, theme) =>
  of.name === 'headline' && `${theme}-${size.width}` in { 'light-1440': 1, 'dark-360': 1 }

/** opened gives a tab that watches: any request, error or message of the console is a failure. */
async function opened(of, hash, size = desk) {
  const p = await (await browsers.at(-1)).newPage({ viewport: size })
  watched(p, of.name, (url) => /^(file|data|blob):/.test(url), fail)
  await p.goto(`file://${of.file}#${hash}`)
  await p.waitForSelector('#answer')
  await quiet(p)
  return p
}

/** press does what a key does, and waits for what comes of it. */
async function press(p, key) {
  await p.keyboard.press(key)
  await quiet(p)
}

async function look(of, p, view, theme, lang, size, { audit = false, more = '' } = {}) {
  await p.setViewportSize(size)
  await go(p, `view=${view}&theme=${theme}&lang=${lang}${more}`)
  const name = `${of.name}-${view}${more.replace(/\W+/g, '-')}-${theme}-${size.width}`
  const wide = await p.evaluate(() => {
    const over = document.documentElement.scrollWidth - innerWidth
    const at = [...document.querySelectorAll('main *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
    return over > 0
      ? `${over} pixels: ${at
          .slice(0, 3)
          .map((e) => e.outerHTML.slice(0, 120))
          .join(' | ')}`
      : ''
  })
  if (wide) fail(`${name} is wider than the window by ${wide}`)
  if ((await p.locator('#answer').textContent()).length < 2) fail(`${name} has no answer`)
  if (audit) await audited(p, name, fail)
  if (!pictured.includes(size)) return
  const png = await p.screenshot({ path: join(out, `${name}.png`), fullPage: true })
  if (!keptOf(of, size, theme)) return
  const differs = await pictures.hold(name, png)
  if (differs) fail(differs)
}

/** looks goes through all views: light and dark, in both languages, narrow and wide. What axe-core finds does not depend
 * on the width beyond that of a phone. */
async function looks(of, some = views) {
  const p = await opened(of, `view=${some[0]}&${english}`)
  await p.evaluate(axe)
  for (const view of some) {
    await look(of, p, view, 'light', 'en', desk, { audit: true })
    await look(of, p, view, 'dark', 'en', wall)
    await look(of, p, view, 'light', 'zh', laptop)
    await chinese(of, p, view)
    await look(of, p, view, 'dark', 'zh', phone, { audit: true })
  }
  await p.close()
}

/** chinese says that a view's own words are Chinese: what it has besides are names and numbers. */
async function chinese(of, p, view) {
  const texts = await p.locator('#answer, main h2, main th, main .seg button, nav button').evaluateAll((all) =>
    all.map((e) => {
      const own = e.cloneNode(true)
      for (const name of own.querySelectorAll('.mono, .skip, [translate=no]')) name.remove()
      return e.translate ? own.textContent : ''
    }),
  )
  for (const text of texts) {
    const words = text.replace(/\b(SVG|PNG|CSV|GPU|NVML|MiB|torch|Shift T|GB|vs)\b/g, '').match(/[a-z]{3,}/gi) ?? []
    if (words.length && !/[\u4e00-\u9fff]/.test(text)) fail(`${of.name}-${view} in Chinese: ${JSON.stringify(text)}`)
  }
}

/** cells are the texts of a table's body, row by row. */
const cells = (p, table) =>
  p.locator(`${table} tbody tr`).evaluateAll((rows) => rows.map((r) => [...r.cells].map((c) => c.textContent.trim())))

const highest = (devices) => devices.reduce((a, b) => (!a || b.allocated_bytes > a.allocated_bytes ? b : a), undefined)

/** numbers compares what the page shows of each run with what the commands print. */
async function numbers(of, { compares = 3, bare = false } = {}) {
  const known = (...args) => json(of.store, 'analyze', args[0], ...of.select, ...args.slice(1))
  const runs = (await json(of.store, 'runs')).runs.filter((r) => !of.select.length || of.select.includes(r.name))
  const names = runs.map((r) => r.name)
  const labelOf = (r) => (names.filter((n) => n === r.name).length === 1 ? r.name : r.run_id)
  const p = await opened(of, `view=runs&${english}`)
  for (const r of runs) {
    const row = p.locator(`tr[data-run="${r.run_id}"]`)
    equal(`${r.name}: its peak among the runs`, await row.locator('[data-n=peak]').textContent(), mib(r.peak_bytes))
    equal(`${r.name}: its step among the runs`, await row.locator('[data-n=step]').textContent(), ms(r.step_ms))
  }
  await go(p, `view=proof&${english}`)
  const proof = await cells(p, '.stack > :nth-child(1)'),
    took = await cells(p, '.stack > :nth-child(2)')
  const costs = await known('cost')
  costs.runs.forEach((c, i) => {
    const n = (v) => (v === null ? '—' : count(v))
    equal(
      `${c.name}: its proof`,
      proof[i]?.slice(2).join(' | '),
      [n(c.events), n(c.missing_events), c.residue_bytes === null ? '—' : `${count(c.residue_bytes)} B`]
        .concat([mib(c.peak_bytes), mib(c.torch_peak_bytes)])
        .join(' | '),
    )
    equal(
      `${c.name}: its cost`,
      took[i]?.slice(1, 4).join(' | '),
      [c.bare_step_ms, c.instrumented_step_ms, c.instrument_ms].map(ms).join(' | '),
    )
  })
  const ladders = (await known('ladder')).runs,
    phases = (await known('phases')).runs,
    found = (await known('findings')).runs
  for (const r of runs.slice(0, compares * 3)) {
    const at = (view, more = '') => `view=${view}&run=${encodeURIComponent(labelOf(r))}&${english}${more}`
    await go(p, at('phases'))
    const rows = await cells(p, 'main'),
      of1 = phases.find((q) => q.run_id === r.run_id)?.phases ?? []
    for (const f of of1.filter((q) => q.rank === of1[0].rank && q.device === of1[0].device)) {
      const row = rows.find((q) => q[0] === f.phase)
      equal(`${r.name}, ${f.phase}: its peak`, row?.[2], mib(f.peak_bytes))
      const time = f.gpu_ms ?? f.wall_ms
      equal(`${r.name}, ${f.phase}: its time`, row?.[4], ms(time?.median) + (f.gpu_ms || !time ? '' : ' (wall)'))
    }
    await go(p, at('findings'))
    const list = found.find((q) => q.run_id === r.run_id)?.findings ?? [],
      cards = await p.locator('article').allTextContents()
    equal(`${r.name}: how many findings`, cards.length, list.length)
    for (const f of list) {
      const card = cards.find((c) => c.includes(f.sentence))
      if (!card) fail(`${r.name}: the finding ${f.id} is not shown`)
      else if (f.saving?.bytes && !card.includes(mib(f.saving.bytes)))
        fail(`${r.name}: what ${f.id} saves is not shown`)
      for (const e of f.edits ?? [])
        if (!card?.includes(`${e.file}:${e.line}`) || !card.includes(e.source))
          fail(`${r.name}: the line to change for ${f.id} is not shown`)
    }
  }
  const broken = (bare ? [] : (await known('breakdown')).runs).filter((r) => highest(r.devices))
  for (const r of broken.slice(0, compares)) {
    const d = highest(r.devices),
      at = (view, more = '') => `view=${view}&run=${encodeURIComponent(labelOf(r))}&${english}${more}`
    await go(p, at('breakdown'))
    const answer = await p.locator('#answer').textContent()
    if (!answer.includes(mib(d.allocated_bytes))) fail(`${r.name}: its peak is not in the answer: ${answer}`)
    const shown = await p
      .locator('aside .list')
      .first()
      .evaluate((e) => {
        const rows = {}
        let name = ''
        for (const c of e.children) {
          if (c.classList.contains('nm')) name = c.textContent
          if (c.classList.contains('num')) rows[name] = c.textContent
        }
        return rows
      })
    for (const c of d.categories.filter((q) => q.bytes)) {
      equal(`${r.name}: ${c.category}`, shown[c.category.replaceAll('_', ' ')], mibs(c.bytes))
    }
    const rungs =
        ladders
          .find((q) => q.run_id === r.run_id)
          ?.gpus.at(0)
          ?.moments.at(-1)?.rungs ?? [],
      text = await p.locator('main').textContent()
    for (const q of rungs.filter((q) => ['driver', 'context+modules+non_torch'].includes(q.rung) && q.bytes !== null)) {
      if (!text.includes(mib(q.bytes))) fail(`${r.name}: ${q.rung} of its ladder, ${mib(q.bytes)}, is not shown`)
    }
    await go(p, at('timeline', `&ev=${d.at.event}`))
    const allocated = await p.locator('[data-n=allocated]').textContent()
    equal(`${r.name}: allocated at the peak's event, summed from blocks`, allocated, mib(d.allocated_bytes))
    if (d.reserved_bytes !== null) {
      await go(p, at('blocks', '&mode=address'))
      equal(
        `${r.name}: reserved, summed from segments`,
        await p.locator('[data-n=reserved]').textContent(),
        mib(d.reserved_bytes),
      )
      equal(
        `${r.name}: free, summed from pieces`,
        await p.locator('[data-n=free]').textContent(),
        mib(d.reserved_bytes - d.allocated_bytes),
      )
    }
    await go(p, at('modules', ''))
    const most = await p.locator('[data-n=module]').textContent()
    await p.locator('.moment input').press('Home')
    await quiet(p)
    if (!(await p.locator('main').textContent()).includes('nothing is allocated then'))
      fail(`${r.name}: something is allocated before the first event`)
    await p.locator('.moment input').press('ArrowRight')
    await p.locator('.moment input').press('PageUp')
    await quiet(p)
    if ((await p.locator('.lead').textContent()).includes('peak')) fail(`${r.name}: another event is called the peak`)
    await p.getByRole('button', { name: 'Peak' }).click()
    await quiet(p)
    equal(`${r.name}: the largest module, back at the peak`, await p.locator('[data-n=module]').textContent(), most)
    await go(p, at('modules', '&mode=each&table=1'))
    const held = new Map((await cells(p, 'main')).map((q) => [q[0], Number(q[2])]))
    const modules = (await json(of.store, 'analyze', 'breakdown', r.run_id, '--by', 'module', '--top', '0')).runs[0]
    for (const q of highest(modules.devices).rows) {
      const inside = [...held].filter(([path]) => path.startsWith(`${q.key}.`))
      if (q.key && !q.others && !inside.length && !q.key.startsWith('(')) {
        equal(`${r.name}: what ${q.key} holds`, held.get(q.key), q.bytes)
      }
    }
  }
  await explained(of, p, broken, labelOf)
  await p.close()
  return broken.length
}

/** explained compares the steps of Compare with what explain says. */
async function explained(of, p, broken, labelOf) {
  const [base, to] = [broken.find((r) => r.params.method === 'vanilla') ?? broken[0], broken.at(-1)]
  if (!to || base === to) return
  const doc = await json(of.store, 'analyze', 'explain', base.run_id, to.run_id)
  const at = `view=compare&base=${encodeURIComponent(labelOf(base))}&run=${encodeURIComponent(labelOf(to))}&${english}`
  const steps = () =>
    p.locator('#waterfall .wr:not(:has(.sub)):not(.tot)').evaluateAll((rows) =>
      Object.fromEntries(
        rows.map((r) => [
          r
            .querySelector('.lab')
            .textContent.replace(/^[▾▸\s]+/, '')
            .trim(),
          r.querySelector('.num').textContent,
        ]),
      ),
    )
  await go(p, at)
  const memory = await steps()
  for (const c of doc.categories.filter((q) => q.delta_bytes)) {
    equal(
      `${labelOf(to)} over ${labelOf(base)}: ${c.category}`,
      memory[c.category.replaceAll('_', ' ')],
      signedMib(c.delta_bytes),
    )
  }
  if (!doc.phases?.length || !(await p.getByRole('button', { name: 'Time', exact: true }).isEnabled())) return
  const words = () => p.locator('.says li:not(.w)').allTextContents()
  const on = new Set(doc.step_sentences)
  equal('what is said of memory', (await words()).join(' '), doc.sentences.filter((w) => !on.has(w)).join(' '))
  await go(p, at + '&mode=time')
  equal('what is said of time', (await words()).join(' '), doc.step_sentences.join(' '))
  const time = await steps()
  for (const f of doc.phases.filter((q) => q.delta_ms)) {
    equal(
      `${labelOf(to)} over ${labelOf(base)}: ${f.phase}`,
      time[f.phase],
      (f.delta_ms > 0 ? '+' : '') + ms(f.delta_ms),
    )
  }
}

/** keys drives the timeline as a reader would. */
async function keys(of) {
  const p = await opened(of, `view=runs&${english}`)
  await press(p, '3')
  await p.waitForSelector('#timeline')
  await press(p, 'p')
  const event = async () => Number((await p.locator('#cursor h2 small').textContent()).replace(/\D/g, ''))
  const peak = await event()
  await press(p, 'ArrowRight')
  equal('the cursor after an arrow', await event(), peak + 1)
  // The address follows what is looked at within a moment.
  await p.waitForFunction((e) => new URLSearchParams(location.hash.slice(1)).get('ev') === e, String(peak + 1))
  await press(p, '[')
  await press(p, 'ArrowRight')
  await press(p, ']')
  await p.waitForSelector('[data-n=grew]')
  await p.getByLabel('A: end of step').selectOption({ index: 1 })
  await p.getByLabel('B: end of step').selectOption({ index: 3 })
  await quiet(p)
  // A block of the list is shown where it is, and the cursor stays.
  await press(p, '4')
  const blocksAt = await p.locator('aside h2 small').first().textContent()
  await p.locator('aside .list button').nth(2).click()
  await quiet(p)
  equal(
    'the cursor after a click on a block of the list',
    await p.locator('aside h2 small').first().textContent(),
    blocksAt,
  )
  if (!(await p.locator('.card').isVisible())) fail('a click on a block of the list shows no card')
  await press(p, '3')
  const [a, b] = (await p.locator('#grew p.cap').textContent()).split('→').map((e) => Number(e.replace(/\D/g, '')))
  if (!(a < b)) fail(`ends of steps are compared from ${a} to ${b}`)
  await press(p, 'l')
  equal('the language', await p.evaluate(() => document.documentElement.lang), 'zh-Hans')
  await press(p, 't')
  equal('the theme', await p.evaluate(() => document.documentElement.dataset.theme), 'dark')
  for (const view of views) {
    await go(p, `view=${view}&${english}`)
    for (const kind of ['SVG', 'PNG', 'CSV']) {
      const button = p.getByRole('button', { name: kind, exact: true })
      const [download] = await Promise.all([p.waitForEvent('download'), button.click()])
      const path = join(out, `saved-${view}.${kind.toLowerCase()}`)
      await download.saveAs(path)
      if (statSync(path).size < 200) fail(`${view}: ${kind} is empty`)
    }
    await press(p, 'Shift+T')
    if (!(await p.locator('main table').count())) fail(`${view}: Shift T shows no table`)
  }
  await p.close()
}

/** table sorts and filters the runs of a large store. */
async function table(of) {
  const p = await opened(of, `view=runs&${english}`)
  const peaks = async () => {
    const all = await p.locator('[data-n=peak]').allTextContents()
    return all.map((s) => Number(s.replace(/[^\d.]/g, '')))
  }
  equal('rows of 200 runs', (await peaks()).length, 200)
  equal('predicted ones', await p.locator('tbody .tag', { hasText: 'predicted' }).count(), 20)
  for (const [direction, sign] of [
    ['ascending', 1],
    ['descending', -1],
  ]) {
    // prettier-ignore
    await p.getByRole('columnheader', { name: 'Peak allocated' }).getByRole('button').click()
    await quiet(p)
    equal(
      'the order',
      await p.getByRole('columnheader', { name: 'Peak allocated' }).getAttribute('aria-sort'),
      direction,
    )
    const got = await peaks()
    if (got.some((v, i) => i && sign * (v - got[i - 1]) < 0)) fail(`peaks are not ${direction}`)
  }
  await p.locator('.search input').fill('dpsgd-1')
  await quiet(p)
  const want = (await json(of.store, 'runs')).runs.filter((r) => `${r.name} ${r.run_id}`.includes('dpsgd-1')).length
  equal('rows that the search leaves', (await peaks()).length, want)
  await p.locator('.search input').fill('')
  await p.locator('.chip', { hasText: 'source=predicted' }).click()
  await quiet(p)
  equal('rows that a chip leaves', (await peaks()).length, 20)
  equal('what is said of them', await p.locator('[data-n=found]').textContent(), '20 of 200 runs')
  await p.close()
}

/** shownAsText says that names are text, whatever is in them. */
async function shownAsText(of) {
  const p = await opened(of, `view=runs&${english}`, phone)
  for (const view of ['runs', 'breakdown', 'timeline', 'compare', 'findings', 'phases', 'proof']) {
    await go(p, `view=${view}&${english}`)
    if (await p.evaluate(() => globalThis.hacked)) fail(`${view}: a name was run`)
    const text = await p.locator('body').textContent()
    if (!text.includes('<script>globalThis.hacked=1</script>"\'&\\u202e'))
      fail(`${view}: the name is not shown as text`)
    if (text.includes('\u202e')) fail(`${view}: a name turns text around`)
  }
  await p.close()
}

/** curve is the peak against what a store's runs vary. */
async function curve(of, curves) {
  const p = await opened(of, `view=runs&${english}`)
  equal(`${of.name}: curves`, await p.locator('#curve polyline').count(), curves)
  equal(
    `${of.name}: runs on the curves`,
    await p.locator('#curve circle').count(),
    (await json(of.store, 'runs')).runs.length,
  )
  await p.close()
}

/** reduced says that a page with a part of a run's events says so, and that its peak is that of the commands. */
async function reduced([window, points]) {
  const r = (await json(window.store, 'analyze', 'breakdown', 'ghost')).runs[0],
    d = highest(r.devices)
  for (const of of [window, points]) {
    const p = await opened(of, `view=timeline&${english}`)
    if (!(await p.locator('main').textContent()).includes('reduced detail')) fail(`${of.name}: does not say so`)
    const allocated = () => p.locator('[data-n=allocated]').textContent()
    equal(`${of.name}: allocated at the peak`, await allocated(), mib(d.allocated_bytes))
    if (of === window) {
      await p.getByRole('button', { name: 'Whole run' }).click()
      await quiet(p)
      equal(`${of.name}, whole run: allocated at the peak`, await allocated(), mib(d.allocated_bytes))
      const seen = (await p.locator('.hint').textContent()).match(/([\d,]+) \/ ([\d,]+) events/)
      if (!seen || seen[1] !== seen[2]) fail(`${of.name}: the whole run is not in view: ${seen}`)
    }
    for (const view of ['blocks', 'modules']) {
      await go(p, `view=${view}&${english}`)
      const text = await p.locator('main').textContent()
      if (text.includes('The file has no room') !== (of === points)) fail(`${of.name}: ${view} says ${text}`)
    }
    await p.close()
    await looks(of, ['timeline', 'blocks', 'modules'])
  }
}

/** tasks plays a newcomer who begins at the list of runs, with a mouse alone. Each is a question, what is clicked, and the
 * text that answers. */
async function tasks(of, leak) {
  const fast = (await json(of.store, 'analyze', 'explain', 'vanilla', 'ghost')).phases.toSorted(
    (a, b) => b.delta_ms - a.delta_ms,
  )[0]
  const modules = (
    await json(of.store, 'analyze', 'breakdown', 'ghost', '--by', 'module', '--depth', '1', '--top', '0')
  ).runs[0]
  const most = highest(modules.devices).rows.toSorted((a, b) => b.bytes - a.bytes)[0].key
  const ask = (p, name) => p.locator('.ask').getByRole('button', { name }).click()
  const pick = async (p, label, index) => {
    await p.getByLabel(label).selectOption({ index })
    await quiet(p)
  }
  const all = [
    [
      of,
      'what grew between the ends of two steps',
      3,
      '#answer',
      /Between A and B memory|At B as much/,
      async (p) => {
        await ask(p, 'What grew')
        await pick(p, 'A: end of step', 1)
        await pick(p, 'B: end of step', 3)
      },
    ],
    [
      of,
      'which module holds the peak',
      1,
      '#answer',
      new RegExp(`^${most.replaceAll('.', '\\.')}`),
      (p) => ask(p, 'Which module'),
    ],
    [
      of,
      'why is ghost slower',
      1,
      '#answer',
      new RegExp(`most of it in ${fast.phase.replaceAll('.', '\\.')}`),
      (p) => ask(p, 'slower'),
    ],
    [of, 'does it fit in 24 GB', 1, '#fits', /24 GB \(RTX 4090\)✕/, (p) => ask(p, 'fit a card')],
    [
      leak,
      'which line made this block',
      2,
      '.card',
      /held byglobal history\[\d\] → .*asked for byleak\.py:11loss = model\(batch\)/,
      async (p) => {
        await ask(p, 'Which line')
        await p.locator('aside .list button', { hasText: '2 AddmmBackward0' }).first().click()
      },
    ],
  ]
  for (const [page, question, clicks, where, answer, drive] of all) {
    const p = await opened(page, english)
    let done = 0
    await p.exposeFunction('counted', () => done++)
    await p.evaluate(() => {
      globalThis.addEventListener('click', (e) => e.target.closest('button') && globalThis.counted())
      globalThis.addEventListener('change', () => globalThis.counted())
    })
    await drive(p)
    await quiet(p)
    const text = await p.locator(where).textContent()
    // A card lies on the chart, and is cut off outside.
    const [box, chart] = await Promise.all([
      p.locator(where).boundingBox(),
      where === '.card' ? p.locator('#blocks').boundingBox() : null,
    ])
    if (!box || (where === '.card' && box.y + box.height > chart.y + chart.height))
      fail(`${question}: ${where} cannot be seen: ${JSON.stringify([box, chart])}`)
    if (!answer.test(text)) fail(`${question}: ${where} says ${text}`)
    if (done > clicks) fail(`${question}: ${done} clicks, over ${clicks}`)
    await p.close()
  }
}

/** lines looks at what a run with lines has besides: the timeline by line, and the lines to change. */
async function lines(of) {
  const p = await opened(of, `view=timeline&by=line&${english}`)
  const text = await p.locator('#cursor').textContent()
  if (!/leak\.py:\d+/.test(text)) fail(`the timeline by line has no line: ${text}`)
  await p.screenshot({ path: join(out, 'leak-timeline-lines.png'), fullPage: true })
  await go(p, `view=findings&${english}`)
  equal('lines to change', await p.locator('.edits').first().textContent(), 'leak.py:14 history.append(loss)')
  await p.screenshot({ path: join(out, 'leak-findings-light-1440.png'), fullPage: true })
  await p.close()
}

/** sampled is the timeline with what is measured beside torch. */
async function sampled(of) {
  const p = await opened(of, `view=timeline&sampled=1&host=1&axis=time&${english}`)
  await p.screenshot({ path: join(out, 'headline-timeline-sampled.png'), fullPage: true })
  if (!(await p.locator('#cursor').textContent()).includes('host memory')) fail('the host is not in the timeline')
  await p.close()
}

async function compared(of, most) {
  const n = await numbers(of, most)
  if (!n && !most?.none) fail(`${of.name}: no run was compared`)
  if (n && most?.none) fail(`${of.name}: it has runs with events`)
}

// More tabs than cores, since a tab waits for frames too.
const tabs = availableParallelism() + 1

async function main() {
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out, { recursive: true })
  const store = copied('headline')
  const headline = page('headline', store, { ingested: true })
  const [oom, lora, stacks] = ['oom', 'lora', 'stacks'].map((name) => page(name, copied(name)))
  // A prediction of testdata/leak.py, which keeps graphs: its lines are known.
  const leak = page('leak', copied('leak', join(here, 'testdata', 'leak')))
  const bare = page('bare', store, { ingested: true, select: ['ghost-bare'] }),
    large = many(),
    fits = fit(),
    parts = details(),
    names = hostile()
  // Those that take longest come first, but for that of which the page takes long to write.
  const jobs = [
    [stacks, looks],
    [oom, looks],
    [headline, compared],
    [headline, looks],
    [large, looks],
    [headline, keys],
    [fits, looks],
    [parts, reduced],
    [stacks, compared],
    [oom, compared],
    [lora, looks],
    [bare, looks],
    [lora, (of) => compared(of, { none: true })],
    [bare, (of) => compared(of, { none: true, bare: true })],
    [large, table],
    [names, shownAsText],
    [headline, sampled],
    [headline, async (of) => tasks(of, await leak)],
    [leak, compared],
    [leak, lines],
    [lora, (of) => curve(of, 1)],
    [fits, (of) => curve(of, 2)],
  ]
  // A page that cannot be made is told of by the job that waits for it.
  for (const [of] of jobs) of.catch(() => undefined)
  await Promise.all(
    Array.from({ length: tabs }, async () => {
      for (let job; (job = jobs.shift());) await attempted(job)
    }),
  )
}

/** attempted runs a test, repeats it if a tab freezes, and reports what went wrong. The other tests go on. */
async function attempted([of, drive]) {
  const name = drive.name || String(drive)
  try {
    const made = await of
    let used
    const run = () => {
      used = browsers.length
      return bounded(name, drive(made), whole)
    }
    // Tests that freeze together share a new browser.
    const relaunch = async () => {
      if (browsers.length === used) {
        browsers.push(launched(executablePath))
        pictures.reopen(await browsers.at(-1))
      }
      await browsers.at(-1)
    }
    await repeated(`${name} of ${made.name ?? 'several'}`, run, relaunch)
  } catch (e) {
    fail(`${name}: ${e.stack ?? e}${e.cause ? `\n${e.cause.stack}` : ''}`)
  }
}

let failed = null
try {
  await main()
} catch (e) {
  failed = e
} finally {
  await Promise.all(browsers.map(async (b) => (await b).close()))
  rmSync(scratch, { recursive: true, force: true })
}
if (failed) fail(`the test itself: ${failed.stack ?? failed}${failed.cause ? `\n${failed.cause.stack}` : ''}`)
const taken = readdirSync(out).filter((f) => f.endsWith('.png')).length
if (pictures.otherLetters) console.log('letters are not those of the kept pictures, which were not compared')
console.log(
  failures
    ? `${failures} failures`
    : `the page holds: ${taken} pictures in ${out}, ${pictures.compared} compared with kept ones`,
)
process.exitCode = failures ? 1 : 0
