import type { Finding } from '../data'
import { count, mib, ms, percent, shown } from '../format'
import { t } from '../i18n'
import { about, current, docs } from '../model'
import { svgPen, theme, type Cell } from '../pen'
import { set, state } from '../state'
import { Lead, Missing, Rows, Save, Seg } from '../ui'
import { goTo } from './timeline'

const value = (f: Finding, by: string) => (by === 'time' ? (f.saves_ms ?? f.ms ?? 0) : (f.saves_bytes ?? 0) || (f.bytes ?? 0) / 1e6)

export function Findings() {
  const r = current(), run = docs.findings?.runs.find((q) => q.run_id === r?.id), by = state.mode === 'time' ? 'time' : 'memory'
  if (!r || !run) return <><Lead answer={t('nothing is known')} /><Missing what={about.missing.findings ?? 'Findings are those of the first repeat of an experiment.'} /></>
  const list = run.findings.slice().sort((a, b) => value(b, by) - value(a, by)), best = Math.max(0, ...list.map((f) => f.saves_bytes ?? 0))
  const rows = (): Cell[][] => [['finding', 'device', 'event', 'bytes', 'ms', 'saves_bytes', 'saves_ms', 'line', 'sentence', 'change', 'assumption'],
    ...list.map((f): Cell[] => [f.id, f.device, f.at?.event ?? null, f.bytes, f.ms, f.saves_bytes, f.saves_ms, f.line, f.sentence, f.change, f.assumption])]
  const svg = () => {
    const c = theme(), H = 40 + list.length * 34, g = svgPen(900, H, c.paper), most = Math.max(1, ...list.map((f) => f.saves_bytes ?? 0))
    list.forEach((f, i) => {
      g.text(f.id, 12, 32 + i * 34, c.ink)
      g.rect(240, 20 + i * 34, ((f.saves_bytes ?? 0) / most) * 480, 22, c.edge)
      g.text(f.saves_bytes ? mib(f.saves_bytes) : '—', 888, 32 + i * 34, c.ink, 'right')
    })
    return g.done(`${r.label}: what changes would save`)
  }
  const worth = list.filter((f) => f.change).length
  return <>
    <Lead answer={worth ? t('{n} changes are worth making; the largest saves at most {bytes}', { n: String(worth), bytes: mib(best) }) : t('Nothing was found that is worth changing')}>
      {shown(r.label)}, {count(list.length)} {t('Findings').toLowerCase()}. Savings do not add up: each is against the run as it is.</Lead>
    <div class="bar"><Seg label="Order" value={by} pick={(mode) => set({ mode })} options={[['memory', t('Saves memory')], ['time', t('Saves time')]]} />
      <Save name={`dpsight-findings-${r.label}`} svg={svg} rows={rows} /></div>
    {state.table ? <Rows rows={rows()} /> : <div class="fgrid">{list.map((f, i) => <Card key={i} f={f} run={r.label} />)}</div>}
    {run.warnings.map((w) => <p key={w} class="cap">⚠ {shown(w)}</p>)}
  </>
}

function Card(p: { f: Finding; run: string }) {
  const { f } = p
  return <article class="panel pad fc"><h2 class="fh">{shown(f.id.replaceAll('-', ' '))}</h2>
    <div class="sv">{f.saves_bytes ? <div><b>{mib(f.saves_bytes)}</b><span>{t('less memory')}</span></div> : f.bytes ? <div><b>{mib(f.bytes)}</b><span>{f.share === null ? '' : `${percent(f.share, 1)} of ${f.of.replaceAll('_', ' ')}`}</span></div> : null}
      {f.saves_ms ? <div><b>{ms(f.saves_ms)}</b><span>{t('less a step')}</span></div> : null}</div>
    <p>{shown(f.sentence)}</p>{f.change ? <p class="do">→ {shown(f.change)}</p> : null}
    <dl class="kv">{f.line ? <><dt>{t('line')}</dt><dd class="mono">{shown(f.line)}</dd></> : null}
      {f.assumption ? <><dt>assumes</dt><dd>{shown(f.assumption)}</dd></> : null}</dl>
    <div class="ft">{f.at ? <button type="button" class="btn" onClick={() => goTo(f.at!.event, { view: 'timeline', device: f.device ? `${f.rank}/${f.device}` : '', mode: '' })}>
      {t('Go to the moment')} · {f.at.phase ? `${shown(f.at.phase)}, ` : ''}{t('event')} {count(f.at.event)}</button> : null}
    <button type="button" class="btn" onClick={() => void navigator.clipboard.writeText(`**${f.id}** in ${p.run}\n\n${f.sentence}\n\n${f.change ? `Change: ${f.change}\n` : ''}${f.line ? `Line: \`${f.line}\`\n` : ''}`)
      .catch(() => undefined)}>{t('Copy as issue')}</button></div></article>
}
