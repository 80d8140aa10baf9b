// The results of the search field: runs, moments, and names in the run's blocks.

import { count, shown } from './format'
import { t } from './i18n'
import { blocks, runs } from './model'
import { folded } from './series'
import { set, state } from './state'
import { goTo } from './views/timeline'

interface Hit {
  kind: string
  text: string
  go: () => void
}

const most = 12

export function hits(query: string): Hit[] {
  const q = query.trim().toLowerCase(),
    out: Hit[] = []
  if (!q) return out
  if (/^[\d,]+$/.test(q)) {
    const event = Number(q.replaceAll(',', ''))
    out.push({
      kind: t('event'),
      text: count(event),
      go: () => {
        goTo(event, { view: 'timeline', query: '' })
      },
    })
  }
  for (const r of runs) {
    if (r.label.toLowerCase().includes(q))
      out.push({
        kind: t('Run'),
        text: r.label,
        go: () => {
          set({ run: r.label, device: '', query: '', event: null, from: null, to: null })
        },
      })
  }
  const d = blocks()
  if (d) {
    const seen = new Set<string>(),
      name = (kind: string, column: Uint32Array, go: (text: string) => void) => {
        for (const k of new Set(column)) {
          const text = kind === t('Module') ? folded(d.texts[k]) : d.texts[k]
          if (!text || seen.has(kind + text) || !text.toLowerCase().includes(q)) continue
          seen.add(kind + text)
          out.push({
            kind,
            text,
            go: () => {
              go(text)
            },
          })
        }
      }
    for (let i = 0; i < d.phases.name.length; i++) {
      const text = d.phases.name[i]
      if (seen.has(text) || !text.includes(q) || d.phases.end[i] <= d.phases.begin[i]) continue
      seen.add(text)
      const from = d.phases.begin[i] + 1,
        to = d.phases.end[i]
      out.push({
        kind: t('Phase'),
        text,
        go: () => {
          set({ view: 'timeline', event: from, from, to, query: '' })
        },
      })
    }
    name(t('Module'), d.kinds.module, (text) => {
      set({ view: 'modules', module: text, query: '', mode: '' })
    })
    name(t('Line'), d.kinds.line, () => {
      set({ view: 'timeline', by: 'line', query: '' })
    })
    name(t('Holder'), d.kinds.holder, () => {
      set({ view: 'timeline', by: 'holder', query: '' })
    })
    name(t('Tensor'), d.kinds.name, () => {
      set({ view: 'timeline', by: 'name', query: '' })
    })
  }
  return out.slice(0, most)
}

export function Hits() {
  if (!state.query) return null
  const list = hits(state.query)
  if (!list.length) return null
  return (
    <ul class="hits panel">
      {list.map((h) => (
        <li key={h.kind + h.text}>
          <button type="button" class="plain" onClick={h.go}>
            <span class="muted">{h.kind}</span> <span class="mono">{shown(h.text)}</span>
          </button>
        </li>
      ))}
    </ul>
  )
}
