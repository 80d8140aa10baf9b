// Draws the pictures of the README: the output of dpsight on a terminal, and a view of the page.
//
//     node scripts/readme-pictures.mjs ./dpsight /usr/bin/chromium < OUTPUT
//
// OUTPUT is the output of a command, with the command as its first line. The page shows runs of examples/headline.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const { chromium } = createRequire(join(root, 'report/web/tests/page.mjs'))('playwright-core')
const [, , dpsight, browserPath] = process.argv

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** terminal returns an SVG picture of text on a dark background. The first line is the command. */
function terminal(lines) {
  const [size, leading, margin] = [13, 19, 16]
  const columns = Math.max(...lines.map((l) => l.length + 2))
  const width = Math.ceil(2 * margin + columns * size * 0.602),
    height = 2 * margin + lines.length * leading
  const texts = lines.map((line, i) => {
    const fill = i === 0 ? '#8fd3b6' : '#f0f0f0'
    const y = margin + leading * i + size
    return `<text x="${margin}" y="${y}" fill="${fill}">${i === 0 ? '$ ' : ''}${escaped(line)}</text>`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"
 font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="${size}"
 role="img" aria-label="${escaped(lines[0])}">
<style>text { white-space: pre }</style>
<rect width="100%" height="100%" rx="8" fill="#14181d"/>
${texts.join('\n')}
</svg>
`
}

const lines = readFileSync(0, 'utf8').trimEnd().split('\n')
writeFileSync(join(root, 'docs/terminal.svg'), terminal(lines))

const scratch = mkdtempSync(join(tmpdir(), 'dpsight-pictures-'))
const browser = await chromium.launch({ executablePath: browserPath, args: ['--no-sandbox'] })
try {
  const file = join(scratch, 'page.html')
  const store = join(root, 'examples/headline')
  execFileSync(dpsight, ['report', 'vanilla', 'dpsgd', 'ghost', '--store', store, '--html', file], { stdio: 'ignore' })
  const page = await browser.newPage({ viewport: { width: 1200, height: 760 } })
  await page.goto(`${pathToFileURL(file)}#view=timeline&run=ghost&lang=en&theme=light`)
  await page.waitForSelector('#cursor [data-n=allocated]')
  await page.waitForTimeout(500)
  await page.screenshot({ path: join(root, 'docs/page.png') })
} finally {
  await browser.close()
  rmSync(scratch, { recursive: true, force: true })
}
