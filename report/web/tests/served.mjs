// served.mjs ADDRESS CHROMIUM [REPETITIONS]: how long the page of dpsight view takes until its timeline can be used, how
// many frames a second it draws while that is zoomed and panned, and how much memory its process of the browser takes.
// The address is the one that dpsight view printed.

import { readFileSync } from 'node:fs'
import { chromium } from 'playwright-core'

const [address, executablePath, repetitions = '5'] = process.argv.slice(2)
const frames = 120

/** resident is the memory of the largest of a browser's renderers, in bytes. */
async function resident(browser) {
  const session = await browser.newBrowserCDPSession()
  const { processInfo } = await session.send('SystemInfo.getProcessInfo')
  const sizes = processInfo
    .filter((p) => p.type === 'renderer')
    .map((p) => Number(readFileSync(`/proc/${p.id}/statm`, 'utf8').split(' ')[1]) * 4096)
  return Math.max(...sizes)
}

const usable = [],
  rates = [],
  sizes = []
let events = '?'
for (let i = 0; i < Number(repetitions); i++) {
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
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
  await p.goto(address)
  await p.waitForURL((u) => !u.search)
  await p.goto(`${address.split('?')[0]}#view=timeline&theme=light&lang=en`)
  await p.reload() // else only the fragment would change
  await p.waitForFunction(() => globalThis.usable, undefined, { timeout: 120_000 })
  usable.push(await p.evaluate(() => globalThis.usable))
  events = /of ([\d,]+) events/i.exec(await p.textContent('main'))?.[1] ?? events
  const draw = async (scope) => {
    if (scope) {
      await p.evaluate((s) => {
        location.hash = location.hash.replace(/&scope=\w+/, '') + s
      }, scope)
      await p.waitForTimeout(1000)
    }
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
    return (frames / times.reduce((a, b) => a + b, 0)) * 1000
  }
  rates.push(Math.min(await draw(''), await draw('&scope=whole')))
  sizes.push((await resident(browser)) / 1e6)
  await browser.close()
}

const said = (list, digits) => {
  const s = list.slice().sort((a, b) => a - b)
  return `${s[s.length >> 1].toFixed(digits)} (${s[0].toFixed(digits)}–${s[s.length - 1].toFixed(digits)})`
}
console.log(`${events} events, ${repetitions} repetitions: median (lowest–highest)`)
console.log(`usable after ${said(usable, 0)} ms`)
console.log(`${said(rates, 1)} frames a second, the lower of a window and of all events, ${frames} frames each`)
console.log(`${said(sizes, 0)} MB in the page's process`)
