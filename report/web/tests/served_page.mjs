// served_page.mjs DPSIGHT CHROMIUM EXAMPLES OUT: the page as dpsight view and dpsight collect --view serve it, in Chromium.
// It has to say what the file of the same store says, and asks nobody but its server. Where DPSIGHT_TEST_PYTHON names a
// Python with torch, a script is recorded on the phantom GPU, and looked at while it runs; pictures of that lie in OUT.

import { spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { URL } from 'node:url'
import { audited, axe, bounded, go, launched, quiet, repeated, watched, whole } from './tab.mjs'

const [dpsight, executablePath, examples, out] = process.argv.slice(2).map((path) => resolve(path))
const python = process.env.DPSIGHT_TEST_PYTHON
const desk = { width: 1440, height: 900 },
  phone = { width: 360, height: 740 }
const english = 'theme=light&lang=en'

let failures = 0
function fail(text) {
  failures++
  console.log('FAIL ' + text)
}

const started = []

/** start runs dpsight. ended is its exit status, and said what it has printed so far. */
function start(...args) {
  const child = spawn(dpsight, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const one = { child, said: '', ended: new Promise((done) => child.on('close', (code) => done(code))) }
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (b) => (one.said += b))
  started.push(one)
  return one
}

/** served starts a command that serves the page, and waits for its address. */
async function served(...args) {
  const one = start(...args)
  const found = () => /http:\/\/127\.0\.0\.1:\d+\/\?token=[0-9a-f]{32}/.exec(one.said)?.[0]
  await Promise.race([
    one.ended.then((code) => {
      if (!found()) throw new Error(`dpsight ${args.join(' ')} ended with ${code}: ${one.said}`)
    }),
    new Promise((done) => {
      for (const stream of [one.child.stdout, one.child.stderr]) stream.on('data', () => found() && done())
    }),
  ])
  return { ...one, address: found(), origin: new URL(found()).origin }
}

let browser = await launched(executablePath)

/** entered is a tab that was opened with the address that was printed. */
async function entered(name, server) {
  const p = await browser.newPage({ viewport: desk })
  watched(p, name, (url) => new URL(url).origin === server.origin || /^(data|blob):/.test(url), fail)
  await p.goto(server.address)
  await p.waitForURL((url) => !url.search)
  await p.waitForSelector('#answer')
  await p.evaluate(axe)
  return p
}

const answer = (p) => p.locator('#answer').textContent()

/** same compares the views of a served store with those of its file. */
async function same(scratch) {
  const store = join(scratch, 'headline'),
    file = join(scratch, 'headline.html')
  cpSync(join(examples, 'headline'), store, { recursive: true })
  const written = start('report', '--store', store, '--html', file)
  if ((await written.ended) !== 0) throw new Error(written.said)
  const server = await served('view', '--no-open', '--store', store)
  const p = await entered('headline', server),
    mailed = await browser.newPage({ viewport: desk })
  watched(mailed, 'the file', (url) => /^(file|data|blob):/.test(url), fail)
  await mailed.goto(`file://${file}`)
  await mailed.waitForSelector('#answer')
  for (const view of ['runs', 'breakdown', 'timeline', 'findings']) {
    for (const tab of [p, mailed]) await go(tab, `view=${view}&${english}`)
    const [got, want] = [await answer(p), await answer(mailed)]
    if (got !== want || want.length < 2) fail(`${view}: served, it says ${got}; the file says ${want}`)
    await audited(p, view, fail)
  }
  await go(p, `view=live&${english}`)
  if ((await answer(p)) !== 'Nothing is being recorded') fail(`no run is recorded, and it says ${await answer(p)}`)
  await audited(p, 'live', fail)
  await Promise.all([p.close(), mailed.close()])
  server.child.kill('SIGINT')
  if ((await server.ended) !== 0) fail(`dpsight view ends with ${await server.ended} after Ctrl-C: ${server.said}`)
}

// A script that leaves more after each step, ten times a second, until it finds a file.
const training = `
import os, sys, time, torch
model = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
held = []
while not os.path.exists(sys.argv[1]):
    held.append(torch.zeros(1 << 18, device="cuda"))
    model(torch.randn(8, 256, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    time.sleep(0.1)
`

/** running looks at a run while it is recorded, in the page that collect serves. In another page, which view serves, the
 * run appears when it has ended. */
async function running(scratch) {
  const store = join(scratch, 'growing'),
    script = join(scratch, 'growing.py'),
    stop = join(scratch, 'stop')
  mkdirSync(store)
  writeFileSync(script, training)
  const beside = await served('view', '--no-open', '--store', store)
  const list = await entered('the list', beside)
  await go(list, `view=runs&${english}`)
  if (await list.locator('tr[data-run]').count()) fail('an empty store has runs')
  const to = ['--device', 'phantom', '--store', store, '--name', 'growing', '--record-steps', '40']
  const run = await served('collect', '--view', ...to, '--', python, script, stop)
  const p = await entered('live', run)
  await p.waitForSelector('#tab-live[aria-selected=true]') // by itself, since something is recorded
  await go(p, `view=live&${english}`)
  const tiles = () => p.locator('.stats .stat b').allTextContents()
  await p.waitForFunction(() => /step \d/.test(document.getElementById('answer').textContent))
  const before = await tiles(),
    steps = async () => Number(/step ([\d,]+)/.exec(await answer(p))?.[1].replace(',', ''))
  const first = await steps()
  await p.waitForFunction((n) => {
    const at = /step ([\d,]+)/.exec(document.getElementById('answer').textContent)
    return Number(at?.[1].replace(',', '')) > n + 5
  }, first)
  await p.locator('.says li', { hasText: 'More is left at the end of each step' }).first().waitFor()
  const after = await tiles()
  for (const i of [0, 1, 4]) if (after[i] === before[i]) fail(`tile ${i} stays at ${after[i]}`)
  await audited(p, 'live, light', fail)
  await p.screenshot({ path: join(out, 'live-light-1440.png'), fullPage: true })
  await p.setViewportSize(phone)
  await go(p, 'view=live&theme=dark&lang=en')
  await audited(p, 'live, dark', fail)
  await p.screenshot({ path: join(out, 'live-dark-360.png'), fullPage: true })
  const wide = await p.evaluate(() => document.documentElement.scrollWidth - innerWidth)
  if (wide > 0) fail(`the Live view is wider than a phone by ${wide} pixels`)
  await p.close() // its server ends with the run
  writeFileSync(stop, '')
  if ((await run.ended) !== 0) fail(`dpsight collect --view ends with ${await run.ended}: ${run.said}`)
  const row = list.locator('tr[data-run]', { hasText: 'growing' })
  await row.waitFor()
  await quiet(list)
  await audited(list, 'the list', fail)
  await go(list, `view=live&${english}`)
  await list.waitForFunction(() => /growing has ended/.test(document.getElementById('answer').textContent))
  await list.close()
  beside.child.kill('SIGINT')
  await beside.ended
}

/** attempted runs a test in a folder of its own, and ends the processes that it started. If a tab freezes, attempted
 * repeats the test. */
async function attempted(drive) {
  const relaunch = async () => {
    await browser.close()
    browser = await launched(executablePath)
  }
  const once = async () => {
    const scratch = mkdtempSync(join(tmpdir(), 'dpsight-served-'))
    try {
      await bounded(drive.name, drive(scratch), whole)
    } finally {
      for (const { child } of started) child.kill('SIGINT')
      await Promise.all(started.map((one) => one.ended))
      rmSync(scratch, { recursive: true, force: true })
    }
  }
  try {
    await repeated(drive.name, once, relaunch)
  } catch (e) {
    fail(`${e.stack ?? e}${started.map((one) => `\n${one.child.spawnargs.join(' ')}: ${one.said}`).join('')}`)
  }
  started.length = 0
}

mkdirSync(out, { recursive: true })
await attempted(same)
if (python && existsSync(python)) await attempted(running)
else console.log('DPSIGHT_TEST_PYTHON names no Python: no run was looked at while it was recorded')
await browser.close()
console.log(failures ? `${failures} failures` : 'the served page holds')
process.exitCode = failures ? 1 : 0
