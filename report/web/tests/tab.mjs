// What drives a tab of the page, written to a file or served.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

export const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
// Nothing is waited for by the clock: this only ends what would never end, on the busiest machine too.
export const patience = 180_000

/** watched gives a tab's errors, messages and requests to fail, unless a request is allowed. */
export function watched(p, name, allowed, fail) {
  p.setDefaultTimeout(patience)
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

/** quiet waits until nothing is being read, and nothing has changed in four frames. */
export async function quiet(p) {
  await p.evaluate(
    () =>
      new Promise((done) => {
        let calm = 0
        const watch = new MutationObserver(() => {
          calm = 0
        })
        watch.observe(document, { subtree: true, childList: true, attributes: true, characterData: true })
        const frame = () => {
          if (document.querySelector('.skel')) calm = 0
          if (calm++ < 4) requestAnimationFrame(frame)
          else {
            watch.disconnect()
            done()
          }
        }
        requestAnimationFrame(frame)
      }),
  )
}

/** go shows something else in a tab, as a link would. */
export async function go(p, hash) {
  const want = Object.fromEntries(new URLSearchParams(hash))
  await p.evaluate((h) => {
    location.hash = h
  }, hash)
  await p.waitForFunction(
    ({ view, theme, lang }) =>
      document.querySelector('[role=tab][aria-selected=true]')?.id === `tab-${view}` &&
      document.documentElement.dataset.theme === theme &&
      document.documentElement.lang.startsWith(lang),
    want,
  )
  await quiet(p)
}
