// Pictures of a few views are kept, small, and compared with new ones: a change of what a reader sees shows in a diff, and
// one that nobody meant fails. Letters differ between machines, so each kept picture tells the width of a text in the
// browser that took it, and one with other letters compares nothing.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const scale = 8 // pixels of the page a pixel of a kept picture, along each side
const apart = 48 // by which a channel of 255 differs
const most = 0.01 // share of the pixels that may

/** Pictures compares what it is given with what lies in a folder, or keeps it there. */
export class Pictures {
  constructor(browser, folder, keeps) {
    this.folder = folder
    this.keeps = keeps
    this.compared = 0
    this.otherLetters = 0
    this.reopen(browser)
    if (keeps) mkdirSync(folder, { recursive: true })
  }

  /** reopen compares pictures in a tab of this browser from now on. */
  reopen(browser) {
    this.page = browser.newPage()
  }

  /** hold gives what a picture differs in from the kept one, or nothing. */
  async hold(name, png) {
    const page = await this.page,
      file = join(this.folder, `${name}.png`),
      url = (bytes) => `data:image/png;base64,${bytes.toString('base64')}`
    const letters = await page.evaluate(() => {
      const g = document.createElement('canvas').getContext('2d')
      return ['system-ui', 'monospace'].map((f) => {
        g.font = `24px ${f}`
        return Math.round(g.measureText('activation gradients 67,362.85 MiB 显存').width)
      })
    })
    const small = await page.evaluate(shrunk, { url: url(png), scale })
    const told = join(this.folder, 'letters.json')
    if (this.keeps) {
      writeFileSync(file, Buffer.from(small.url.split(',')[1], 'base64'))
      writeFileSync(told, JSON.stringify(letters) + '\n')
      return null
    }
    if (!existsSync(file)) return `${name}: no picture of it is kept`
    if (String(JSON.parse(readFileSync(told, 'utf8'))) !== String(letters)) {
      this.otherLetters++
      return null
    }
    this.compared++
    const was = await page.evaluate(shrunk, { url: url(readFileSync(file)), scale: 1 })
    if (was.width !== small.width || was.height !== small.height)
      return `${name} has ${small.width} × ${small.height} pixels, the kept picture ${was.width} × ${was.height}`
    let differ = 0
    for (let i = 0; i < was.pixels.length; i += 4)
      if ([0, 1, 2].some((c) => Math.abs(was.pixels[i + c] - small.pixels[i + c]) > apart)) differ++
    const share = differ / (was.pixels.length / 4)
    return share > most ? `${name} differs in ${(share * 100).toFixed(1)} % of its pixels from the kept picture` : null
  }
}

/** shrunk runs in the browser: a picture, its sides divided, as pixels and as a file. */
async function shrunk({ url, scale }) {
  const image = new globalThis.Image()
  image.src = url
  await image.decode()
  const canvas = document.createElement('canvas')
  canvas.width = Math.round(image.width / scale)
  canvas.height = Math.round(image.height / scale)
  const g = canvas.getContext('2d')
  g.imageSmoothingQuality = 'high'
  g.drawImage(image, 0, 0, canvas.width, canvas.height)
  const { width, height, data } = g.getImageData(0, 0, canvas.width, canvas.height)
  return { width, height, pixels: [...data], url: canvas.toDataURL('image/png') }
}
