// One way to draw, on a canvas or into an SVG file: what is saved is what is seen.

export interface Pen {
  readonly width: number
  readonly height: number
  rect(x: number, y: number, w: number, h: number, fill: string, alpha?: number): void
  frame(x: number, y: number, w: number, h: number, stroke: string, width?: number): void
  line(points: number[], stroke: string, width?: number, dash?: number[]): void
  area(points: number[], fill: string): void
  text(text: string, x: number, y: number, fill: string, align?: 'left' | 'center' | 'right', bold?: boolean): void
  measure(text: string): number
  clip(x: number, y: number, w: number, h: number, inside: () => void): void
}

const family =
  'Inter, ui-sans-serif, system-ui, "Segoe UI", "Noto Sans", "PingFang SC", "Microsoft YaHei", ' +
  '"Noto Sans CJK SC", sans-serif'
export const fontSize = () => (innerWidth >= 2200 ? 14 : 12)

export function canvasPen(canvas: HTMLCanvasElement, height: number): Pen {
  const width = canvas.clientWidth || canvas.parentElement?.clientWidth || 600
  const ratio = devicePixelRatio || 1
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio)
    canvas.height = Math.round(height * ratio)
    canvas.style.height = `${height}px`
  }
  const g = canvas.getContext('2d')!
  g.setTransform(ratio, 0, 0, ratio, 0, 0)
  g.clearRect(0, 0, width, height)
  const path = (p: number[]) => {
    g.beginPath()
    g.moveTo(p[0], p[1])
    for (let i = 2; i < p.length; i += 2) g.lineTo(p[i], p[i + 1])
  }
  g.textBaseline = 'middle'
  return {
    width,
    height,
    rect(x, y, w, h, fill, alpha = 1) {
      g.globalAlpha = alpha
      g.fillStyle = fill
      g.fillRect(x, y, w, h)
      g.globalAlpha = 1
    },
    frame(x, y, w, h, stroke, lw = 1) {
      g.strokeStyle = stroke
      g.lineWidth = lw
      g.strokeRect(x, y, w, h)
    },
    line(p, stroke, lw = 1, dash = []) {
      g.strokeStyle = stroke
      g.lineWidth = lw
      g.setLineDash(dash)
      path(p)
      g.stroke()
      g.setLineDash([])
    },
    area(p, fill) {
      g.fillStyle = fill
      path(p)
      g.closePath()
      g.fill()
    },
    text(text, x, y, fill, align = 'left', bold = false) {
      g.font = `${bold ? 600 : 400} ${fontSize()}px ${family}`
      g.fillStyle = fill
      g.textAlign = align
      g.fillText(text, x, y)
    },
    measure(text) {
      g.font = `600 ${fontSize()}px ${family}`
      return g.measureText(text).width
    },
    clip(x, y, w, h, inside) {
      g.save()
      g.beginPath()
      g.rect(x, y, w, h)
      g.clip()
      inside()
      g.restore()
      g.textBaseline = 'middle'
    },
  }
}

const escaped = (s: string) =>
  s.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;')
const r = (n: number) => String(Math.round(n * 100) / 100)

/** widthOf is about how wide a text of 12 pixels is: Chinese characters are squares. */
export const widthOf = (text: string) => Array.from(text).reduce((w, c) => w + (c > '\u2e80' ? 12.5 : 7), 0)

export function svgPen(width: number, height: number, paper: string): Pen & { done(title: string): string } {
  const out: string[] = []
  let clips = 0
  const points = (p: number[]) => {
    let s = ''
    for (let i = 0; i < p.length; i += 2) s += `${i ? ' ' : ''}${r(p[i])},${r(p[i + 1])}`
    return s
  }
  return {
    width,
    height,
    rect(x, y, w, h, fill, alpha = 1) {
      out.push(
        `<rect x="${r(x)}" y="${r(y)}" width="${r(Math.max(0, w))}" height="${r(Math.max(0, h))}" fill="${fill}"` +
          (alpha < 1 ? ` fill-opacity="${alpha}"` : '') +
          '/>',
      )
    },
    frame(x, y, w, h, stroke, lw = 1) {
      out.push(
        `<rect x="${r(x)}" y="${r(y)}" width="${r(Math.max(0, w))}" height="${r(Math.max(0, h))}" fill="none" ` +
          `stroke="${stroke}" stroke-width="${lw}"/>`,
      )
    },
    line(p, stroke, lw = 1, dash = []) {
      out.push(
        `<polyline points="${points(p)}" fill="none" stroke="${stroke}" stroke-width="${lw}"` +
          (dash.length ? ` stroke-dasharray="${dash.join(' ')}"` : '') +
          '/>',
      )
    },
    area(p, fill) {
      out.push(`<polygon points="${points(p)}" fill="${fill}"/>`)
    },
    text(text, x, y, fill, align = 'left', bold = false) {
      const anchor = align === 'left' ? 'start' : align === 'right' ? 'end' : 'middle'
      out.push(
        `<text x="${r(x)}" y="${r(y)}" fill="${fill}" text-anchor="${anchor}" dominant-baseline="central"` +
          (bold ? ' font-weight="600"' : '') +
          `>${escaped(text)}</text>`,
      )
    },
    measure: (text) => widthOf(text) * (fontSize() / 12),
    clip(x, y, w, h, inside) {
      const id = `c${++clips}`
      out.push(
        `<clipPath id="${id}"><rect x="${r(x)}" y="${r(y)}" width="${r(w)}" height="${r(h)}"/></clipPath>`,
        `<g clip-path="url(#${id})">`,
      )
      inside()
      out.push('</g>')
    },
    done: (title) =>
      `<svg xmlns="http://www.w3.org/2000/svg" width="${r(width)}" height="${r(height)}" ` +
      `viewBox="0 0 ${r(width)} ${r(height)}" font-family="${escaped(family)}" font-size="${fontSize()}">` +
      `<title>${escaped(title)}</title><rect width="100%" height="100%" fill="${paper}"/>${out.join('')}</svg>`,
  }
}

function readTheme() {
  const s = getComputedStyle(document.documentElement)
  const get = (name: string) => s.getPropertyValue('--' + name).trim()
  return {
    ink: get('ink'),
    soft: get('soft'),
    faint: get('faint'),
    line: get('line'),
    edge: get('edge'),
    paper: get('surface'),
    sunk: get('sunk'),
    bad: get('bad'),
    good: get('good'),
    warn: get('warn'),
    bg: get('bg'),
  }
}

const themes = new Map<string, ReturnType<typeof readTheme>>()

/** Colours of the theme that the page has now. To read them takes some of a frame's time, so it is done once. */
export function theme() {
  const name = document.documentElement.dataset.theme ?? ''
  let got = themes.get(name)
  if (!got) themes.set(name, (got = readTheme()))
  return got
}

/** Ink or white, whichever has more contrast on a fill. */
export function inkOn(fill: string): string {
  const c = [1, 3, 5]
    .map((i) => parseInt(fill.slice(i, i + 2), 16) / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
  return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2] > 0.19 ? '#16181b' : '#ffffff'
}

function save(name: string, blob: Blob) {
  const a = document.createElement('a')
  a.href = URL.createObjectURL(blob)
  a.download = name
  a.click()
  setTimeout(() => {
    URL.revokeObjectURL(a.href)
  }, 10_000)
}

export const saveSVG = (name: string, svg: string) => {
  save(`${name}.svg`, new Blob([svg], { type: 'image/svg+xml' }))
}

export function savePNG(name: string, svg: string) {
  const image = new Image(),
    url = URL.createObjectURL(new Blob([svg], { type: 'image/svg+xml' }))
  image.onload = () => {
    const canvas = document.createElement('canvas')
    canvas.width = image.width * 2
    canvas.height = image.height * 2
    const g = canvas.getContext('2d')!
    g.scale(2, 2)
    g.drawImage(image, 0, 0)
    URL.revokeObjectURL(url)
    canvas.toBlob((blob) => {
      if (blob) save(`${name}.png`, blob)
    }, 'image/png')
  }
  image.src = url
}

export function saveCSV(name: string, rows: Cell[][]) {
  const cell = (v: Cell) => {
    const s = v == null ? '' : String(v)
    return /[",\n\r]/.test(s) ? `"${s.replaceAll('"', '""')}"` : s
  }
  save(
    `${name}.csv`,
    new Blob([rows.map((row) => row.map(cell).join(',')).join('\r\n') + '\r\n'], { type: 'text/csv' }),
  )
}

export type Cell = string | number | null
