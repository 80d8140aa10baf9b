// Pens draw in the same way on a canvas and into an SVG file, so that a saved picture equals the picture on the page.

export interface Pen {
  readonly width: number
  readonly height: number
  rect(x: number, y: number, w: number, h: number, fill: string, alpha?: number): void
  frame(x: number, y: number, w: number, h: number, stroke: string, width?: number): void
  line(points: number[], stroke: string, width?: number, dash?: number[]): void
  /** stack draws layers on top of one another. Each column is one pixel wide, and the first is at x. bottom has, for
      each column, the height of the lowest layer's lower edge. */
  stack(x: number, bottom: Float64Array, layers: Layer[], paper: string): void
  text(text: string, x: number, y: number, fill: string, align?: 'left' | 'center' | 'right', bold?: boolean): void
  measure(text: string): number
  clip(x: number, y: number, w: number, h: number, inside: () => void): void
}

/** A layer has, for each column, the height of its upper edge. If a layer is thick enough, a line in the paper's colour
    separates it from the layer above. */
export interface Layer {
  fill: string
  top: Float64Array
}
const thick = 4
const separator = 0.8

const family =
  'Inter, ui-sans-serif, system-ui, "Segoe UI", "Noto Sans", "PingFang SC", "Microsoft YaHei", ' +
  '"Noto Sans CJK SC", sans-serif'
export const fontSize = () => (innerWidth >= 2200 ? 14 : 12)

/** sheets has, for each canvas, the picture of the last stack that was drawn on it. */
const sheets = new WeakMap<HTMLCanvasElement, { canvas: HTMLCanvasElement; image: ImageData }>()

/** rgba returns the components of a colour, from 0 to 255. */
function rgba(fill: string): number[] {
  const hex = fill.length < 7 ? fill.replace(/[^#]/g, '$&$&') : fill
  return [1, 3, 5, 7].map((i) => (i < hex.length ? parseInt(hex.slice(i, i + 2), 16) : 255))
}

/** columnsOf returns the picture of a stack, which it writes pixel by pixel, since filling paths with thousands of
 * corners takes ten times as long on a machine without a GPU. A pixel on an edge mixes the colours of the layers, in
 * proportion to the part of the pixel that each layer covers. */
function columnsOf(
  of: HTMLCanvasElement,
  bottom: Float64Array,
  layers: Layer[],
  paper: string,
  height: number,
  ratio: number,
) {
  const width = bottom.length
  let sheet = sheets.get(of)
  if (sheet?.image.width !== width || sheet.image.height !== height) {
    sheet = { canvas: document.createElement('canvas'), image: new ImageData(width, height) }
    sheet.canvas.width = width
    sheet.canvas.height = height
    sheets.set(of, sheet)
  }
  const pixels = new Uint32Array(sheet.image.data.buffer)
  pixels.fill(0)
  const colors = [...layers.map((l) => rgba(l.fill)), rgba(paper)],
    solid = Uint32Array.from(colors, ([r, g, b, a]) => ((a << 24) | (b << 16) | (g << 8) | r) >>> 0)
  const reds = Float64Array.from(colors, (c) => c[0]),
    greens = Float64Array.from(colors, (c) => c[1]),
    blues = Float64Array.from(colors, (c) => c[2]),
    alphas = Float64Array.from(colors, (c) => c[3])
  const most = 2 * layers.length,
    lows = new Float64Array(most),
    highs = new Float64Array(most),
    color = new Uint16Array(most)
  for (let column = 0; column < width; column++) {
    let n = 0,
      below = Math.min(height, bottom[column] * ratio)
    for (let k = 0; k < layers.length; k++) {
      const above = Math.max(0, layers[k].top[column] * ratio)
      if (above >= below) continue
      const edge = below - above < thick * ratio ? above : above + separator * ratio
      lows[n] = below
      highs[n] = edge
      color[n++] = k
      if (edge > above) {
        lows[n] = edge
        highs[n] = above
        color[n++] = layers.length
      }
      below = above
    }
    // r, g, b and a add up the colours of the layers in the pixel at row, weighted by the covered part and the alpha.
    let row = -1,
      r = 0,
      g = 0,
      b = 0,
      a = 0
    for (let i = 0; i <= n; i++) {
      const k = color[i],
        last = i < n ? Math.ceil(lows[i]) - 1 : -1,
        first = i < n ? Math.floor(highs[i]) : -1,
        parts = last > first ? 2 : 1
      for (let part = 0; part < parts; part++) {
        const at = part || parts === 1 ? first : last
        if (at !== row) {
          if (row >= 0 && a > 0)
            pixels[row * width + column] =
              ((Math.min(255, a + 0.5) << 24) | ((b / a + 0.5) << 16) | ((g / a + 0.5) << 8) | (r / a + 0.5)) >>> 0
          row = at
          r = g = b = a = 0
        }
        if (i === n) break
        const weight = (parts === 1 ? lows[i] - highs[i] : part ? first + 1 - highs[i] : lows[i] - last) * alphas[k]
        r += reds[k] * weight
        g += greens[k] * weight
        b += blues[k] * weight
        a += weight
        if (parts === 2 && !part) for (let q = last - 1; q > first; q--) pixels[q * width + column] = solid[k]
      }
    }
  }
  sheet.canvas.getContext('2d')!.putImageData(sheet.image, 0, 0)
  return sheet.canvas
}

/** outlined draws a stack as polygons. Successive columns of equal height become one line. */
function outlined(
  g: Pen,
  area: (points: number[], fill: string) => void,
  x: number,
  bottom: Float64Array,
  layers: Layer[],
  paper: string,
) {
  const edge = (y: Float64Array) => {
    const line: number[] = []
    for (let c = 0; c < y.length; c++) {
      const m = line.length
      if (m && line[m - 1] === y[c]) line[m - 2] = x + c + 1
      else line.push(x + c, y[c], x + c + 1, y[c])
    }
    return line
  }
  let low = bottom
  for (const { fill, top } of layers) {
    const line = edge(top),
      under = edge(low),
      back: number[] = []
    for (let q = under.length - 2; q >= 0; q -= 2) back.push(under[q], under[q + 1])
    area([...line, ...back], fill)
    for (let q = 0; q < line.length - 2; q += 4) {
      const c = Math.round(line[q] - x)
      if (low[c] - line[q + 1] >= thick)
        g.line([line[q], line[q + 1] + separator / 2, line[q + 2], line[q + 3] + separator / 2], paper, separator)
    }
    low = top
  }
}

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
  // Setting a font is slow, since the browser then parses the font's list of families again.
  let written: boolean | null = null
  const write = (bold: boolean) => {
    if (bold !== written) g.font = `${bold ? 600 : 400} ${fontSize()}px ${family}`
    written = bold
  }
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
    stack(x, bottom, layers, paper) {
      const sheet = columnsOf(canvas, bottom, layers, paper, Math.round(height * ratio), ratio)
      g.imageSmoothingEnabled = false
      g.drawImage(sheet, x, 0, sheet.width, height)
    },
    text(text, x, y, fill, align = 'left', bold = false) {
      write(bold)
      g.fillStyle = fill
      g.textAlign = align
      g.fillText(text, x, y)
    },
    measure(text) {
      write(true)
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
      written = null
    },
  }
}

const escaped = (s: string) =>
  s.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;')
const r = (n: number) => String(Math.round(n * 100) / 100)

/** widthOf estimates the width of a text in a font of 12 pixels. Chinese characters are as wide as they are high. */
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
    stack(x, bottom, layers, paper) {
      const area = (p: number[], fill: string) => out.push(`<polygon points="${points(p)}" fill="${fill}"/>`)
      outlined(this, area, x, bottom, layers, paper)
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

/** Returns the colours of the page's present theme. Reading the colours takes part of a frame's time, so the page reads
    them once. */
export function theme() {
  const name = document.documentElement.dataset.theme ?? ''
  let got = themes.get(name)
  if (!got) themes.set(name, (got = readTheme()))
  return got
}

/** Returns ink or white, whichever has more contrast on a fill. */
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
