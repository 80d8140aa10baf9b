// What drives a tab of the page, written to a file or served.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { chromium, errors } from 'playwright-core'

export const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
// No test waits for a fixed time. patience, in ms, only ends what would never end, on the busiest machine too.
export const patience = 180_000
export const whole = 5 * patience // for a whole test
const stillFor = 60 // seconds without a frame, by the tab's own timer, after which a tab counts as frozen

/** Frozen is the error of a tab that draws no frames or does not answer. Chromium may be the cause, as on a machine that
 * stood still. If the page is the cause, the tab freezes again when the test is repeated. */
export class Frozen extends Error {
  name = 'Frozen'
}

/** launched starts Chromium. */
export const launched = (executablePath) =>
  chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] })

/** bounded waits for a promise, and throws Frozen if it takes longer than a limit in ms. By default the limit is twice
 * the patience, since the script that waits for a quiet tab may take the patience once. */
export async function bounded(what, promise, limit = 2 * patience) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Frozen(`${what} has not ended after ${limit / 1000} s`)), limit)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** repeated runs a test. If a tab freezes, or something is waited for in vain, repeated starts a new browser and runs the
 * test once more. */
export async function repeated(name, run, relaunch) {
  try {
    return await run()
  } catch (e) {
    if (!(e instanceof Frozen || e instanceof errors.TimeoutError)) throw e
    console.log(`${name} is repeated in a new browser: ${e.message}`)
    await relaunch()
    return run()
  }
}

/** watched gives a tab's errors, messages and requests to fail, unless a request is allowed. */
export function watched(p, name, allowed, fail) {
  p.setDefaultTimeout(patience)
  // Playwright's timeout does not end a script that a tab runs.
  const evaluate = p.evaluate.bind(p)
  p.evaluate = (...what) => bounded(`${name} ${p.url()}: a script`, evaluate(...what))
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
  const restless = await p.evaluate(rested, { want, most: patience / 1000, stillFor })
  if (!restless) return
  const { frozen, ...seen } = restless
  const what = `${p.url()} ${frozen ? 'draws no frames' : 'does not come to rest'}: ${JSON.stringify(seen)}`
  throw frozen ? new Frozen(what) : new Error(what)
}

/** rested runs in the tab. rested returns null if the tab comes to rest, and else describes what the tab does instead.
 * Seconds are counted by a timer, which stands still if the whole machine does. */
function rested({ want, most, stillFor }) {
  const root = document.documentElement
  const shows = () =>
    (!want.view || document.querySelector('[role=tab][aria-selected=true]')?.id === `tab-${want.view}`) &&
    (!want.theme || root.dataset.theme === want.theme) &&
    (!want.lang || root.lang.startsWith(want.lang))
  return new Promise((done) => {
    let calm = 0,
      frames = 0,
      seconds = 0,
      still = 0, // seconds since the last frame
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
      seconds++
      still++
      const frozen = still >= stillFor
      if (!frozen && seconds < most) return
      const parts = document.querySelectorAll('.skel').length
      end({ frozen, frames, calm, parts_being_read: parts, shows: shows(), last_change: change })
    }, 1000)
    watch.observe(document, { subtree: true, childList: true, attributes: true, characterData: true })
    const frame = () => {
      frames++
      still = 0
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
