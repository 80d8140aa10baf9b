// What drives a tab of the page, written to a file or served.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { chromium, errors } from 'playwright-core'

export const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
// No test waits for a fixed time. patience, in ms, only ends what would never end, on the busiest machine too.
export const patience = 180_000
const frozen = 60_000 // a tab that has drawn no frame for so many ms will not draw one any more

/** Frozen is the error of a tab that draws no frames or does not answer. Chromium may be the cause, as on a machine that
 * stood still. If the page is the cause, the tab freezes again when the test is repeated. */
export class Frozen extends Error {}

/** launched starts Chromium. */
export const launched = (executablePath) =>
  chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] })

/** bounded waits for a promise, and throws Frozen if the promise takes longer than a tab that answers can take. */
async function bounded(what, promise) {
  let timer
  const late = new Promise((_, refuse) => {
    timer = setTimeout(() => refuse(new Frozen(`${what} has not ended after ${(2 * patience) / 1000} s`)), 2 * patience)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** repeated runs a test in a browser, and once more in a new browser if a tab of the first one freezes. */
export async function repeated(name, run, anew) {
  try {
    return await run()
  } catch (e) {
    if (!(e instanceof Frozen)) throw e
    console.log(`${name} is repeated in a new browser: ${e.message}`)
    await anew()
    return run()
  }
}

/** watched gives a tab's errors, messages and requests to fail, unless a request is allowed. */
export function watched(p, name, allowed, fail) {
  p.setDefaultTimeout(patience)
  // Playwright's timeout does not end a script that a tab runs.
  const evaluate = p.evaluate.bind(p)
  p.evaluate = (...what) => bounded(`${name} ${p.url()}: a script`, evaluate(...what))
  const screenshot = p.screenshot.bind(p) // waits for frames too
  p.screenshot = (how) =>
    screenshot(how).catch((e) => {
      throw e instanceof errors.TimeoutError ? new Frozen(e.message, { cause: e }) : e
    })
  p.on('console', (m) => {
    if (['error', 'warning'].includes(m.type())) fail(`${name} ${p.url()}: the console says ${m.text()}`)
  })
  p.on('pageerror', (e) => fail(`${name} ${p.url()}: ${e.stack ?? e}`))
  p.on('crash', () => fail(`${name} ${p.url()}: the tab crashed`))
  p.on('request', (r) => {
    if (!allowed(r.url())) fail(`${name}: a request for ${r.url()}`)
  })
}

/** audited gives what axe-core finds to be serious or critical to fail. The tab has run axe. */
export async function audited(p, name, fail) {
  const found = await p.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }))
  for (const v of found.violations.filter((q) => ['serious', 'critical'].includes(q.impact))) {
    const nodes = v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160))
    fail(`${name}: ${v.id}: ${nodes.join(' | ')}`)
  }
}

/** quiet waits until the tab shows what is wanted, nothing is being read, and nothing has changed in four frames. */
export async function quiet(p, want = {}) {
  const restless = await p.evaluate(rested, { want, patience, frozen })
  if (!restless) return
  const { frozen: still, ...seen } = restless
  throw new (still ? Frozen : Error)(`${p.url()} does not come to rest: ${JSON.stringify(seen)}`)
}

/** rested runs in the tab. rested returns null if the tab comes to rest, and else describes what the tab does instead. */
function rested({ want, patience, frozen }) {
  const root = document.documentElement
  const shows = () =>
    (!want.view || document.querySelector('[role=tab][aria-selected=true]')?.id === `tab-${want.view}`) &&
    (!want.theme || root.dataset.theme === want.theme) &&
    (!want.lang || root.lang.startsWith(want.lang))
  return new Promise((done) => {
    const began = performance.now()
    let calm = 0,
      frames = 0,
      drawn = began, // when the last frame was drawn
      change = ''
    const watch = new MutationObserver((changes) => {
      calm = 0
      const { type, target } = changes.at(-1)
      change = `${type} of ${(target.outerHTML ?? target.parentElement?.outerHTML ?? '').slice(0, 160)}`
    })
    const end = (what) => {
      clearInterval(timer)
      watch.disconnect()
      done(what)
    }
    const timer = setInterval(() => {
      const now = performance.now(),
        still = now - drawn > frozen
      if (!still && now - began < patience) return
      const parts = document.querySelectorAll('.skel').length
      end({ frozen: still, frames, calm, parts_being_read: parts, shows: shows(), last_change: change })
    }, 1000)
    watch.observe(document, { subtree: true, childList: true, attributes: true, characterData: true })
    const frame = () => {
      frames++
      drawn = performance.now()
      if (!shows() || document.querySelector('.skel')) calm = 0
      if (calm++ < 4) requestAnimationFrame(frame)
      else end(null)
    }
    requestAnimationFrame(frame)
  })
}

/** go shows something else in a tab, as a link would. */
export async function go(p, hash) {
  await p.evaluate((h) => {
    location.hash = h
  }, hash)
  await quiet(p, Object.fromEntries(new URLSearchParams(hash)))
}
