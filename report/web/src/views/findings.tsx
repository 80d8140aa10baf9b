import type { Finding } from '../data'
import { count, mib, ms, percent, shown } from '../format'
import { t } from '../i18n'
import { about, current, docs } from '../model'
import { svgPen, theme, type Cell } from '../pen'
import { set, state } from '../state'
import { Lead, Missing, Rows, Save, Seg } from '../ui'
import { goTo } from './timeline'

/** The sign before the bytes of a saving, by how the saving is known. */
const signs: Record<string, string> = { at_most: '≤ ', at_least: '≥ ' }
const saved = (f: Finding) => `${signs[f.confidence] ?? ''}${mib(f.saving?.bytes ?? 0)}`
const lineOf = (f: Finding) => (f.place.line ? `${f.place.line.file}:${f.place.line.line}` : null)
const editOf = (e: { file: string; line: number; source: string }) => `${e.file}:${e.line}  ${e.source}`

export function Findings() {
  const r = current(),
    run = docs.findings?.runs.find((q) => q.run_id === r?.id),
    by = state.mode === 'time' ? 'time' : 'memory'
  if (!r || !run)
    return (
      <>
        <Lead answer={t('nothing is known')} />
        <Missing what={about.missing.findings ?? 'Findings are those of the first repeat of an experiment.'} />
      </>
    )
  // Sorted by memory, findings keep the order of dpsight findings, which begins with growth.
  const list =
      by === 'time' ? run.findings.toSorted((a, b) => (b.saving?.ms ?? 0) - (a.saving?.ms ?? 0)) : run.findings,
    best = list.reduce<Finding | null>((a, f) => ((f.saving?.bytes ?? 0) > (a?.saving?.bytes ?? 0) ? f : a), null)
  const rows = (): Cell[][] => [
    [
      'finding',
      'title',
      'device',
      'event',
      'phase',
      'module',
      'line',
      'holder',
      'bytes',
      'ms',
      'saves_bytes',
      'saves_ms',
      'confidence',
      'sentence',
      'change',
      'assumption',
      'edits',
    ],
    ...list.map((f): Cell[] => [
      f.id,
      f.title,
      f.place.device,
      f.place.at?.event ?? null,
      f.place.phase,
      f.place.module,
      lineOf(f),
      f.holder?.path ?? null,
      f.bytes,
      f.ms,
      f.saving?.bytes ?? null,
      f.saving?.ms ?? null,
      f.confidence,
      f.sentence,
      f.change ?? null,
      f.saving?.assumption ?? null,
      f.edits?.map(editOf).join('; ') ?? null,
    ]),
  ]
  const svg = () => {
    const c = theme(),
      H = 40 + list.length * 34,
      g = svgPen(900, H, c.paper),
      most = Math.max(1, ...list.map((f) => f.saving?.bytes ?? 0))
    list.forEach((f, i) => {
      g.text(f.id, 12, 32 + i * 34, c.ink)
      g.rect(240, 20 + i * 34, ((f.saving?.bytes ?? 0) / most) * 480, 22, c.edge)
      g.text(f.saving?.bytes ? mib(f.saving.bytes) : '—', 888, 32 + i * 34, c.ink, 'right')
    })
    return g.done(`${r.label}: what changes would save`)
  }
  const worth = list.filter((f) => f.change).length
  return (
    <>
      <Lead
        answer={
          worth
            ? best
              ? t('{n} changes are worth making; the largest saving is {bytes}', {
                  n: String(worth),
                  bytes: saved(best),
                })
              : t('{n} changes are worth making', { n: String(worth) })
            : t('Nothing was found that is worth changing')
        }
      >
        {shown(r.label)}, {count(list.length)} {t('Findings').toLowerCase()}.{' '}
        {t('Savings do not add up: each is against the run as it is.')}
      </Lead>
      <div class="bar">
        {list.some((f) => f.saving?.ms) ? (
          <Seg
            label="Order"
            value={by}
            pick={(mode) => {
              set({ mode })
            }}
            options={[
              ['memory', t('Saves memory')],
              ['time', t('Saves time')],
            ]}
          />
        ) : null}
        <Save name={`dpsight-findings-${r.label}`} svg={svg} rows={rows} />
      </div>
      {state.table ? (
        <Rows rows={rows()} />
      ) : (
        <div class="fgrid">
          {list.map((f, i) => (
            <Card key={i} f={f} run={r.label} />
          ))}
        </div>
      )}
      {run.warnings.map((w) => (
        <p key={w} class="cap">
          ⚠ {shown(w)}
        </p>
      ))}
    </>
  )
}

function Card(p: { f: Finding; run: string }) {
  const { f } = p,
    at = f.place.at,
    line = f.place.line
  const bound = f.confidence in signs
  const facts: [string, string | null | undefined, boolean][] = [
    [t('asked for by'), line && `${lineOf(f)!}${line.source ? `  ${line.source}` : ''}`, true],
    [t('module'), f.place.module, true],
    [t('held by'), f.holder?.path, true],
    [t('basis'), f.saving?.assumption, false],
  ]
  return (
    <article class="panel pad fc">
      <h2 class="fh">
        <span>{shown(f.title)}</span>
        <span class={`tag ${bound ? 'warn' : ''}`}>
          {bound ? '◇' : '◆'} {t(f.confidence.replaceAll('_', ' '))}
        </span>
      </h2>
      <div class="sv">
        {f.saving?.bytes ? (
          <div>
            <b>{saved(f)}</b>
            <span>{t('less memory')}</span>
          </div>
        ) : f.bytes ? (
          <div>
            <b>{mib(f.bytes)}</b>
            <span>{f.share === null ? '' : `${percent(f.share, 1)} of ${(f.of ?? '').replaceAll('_', ' ')}`}</span>
          </div>
        ) : null}
        {f.saving?.ms ? (
          <div>
            <b>{ms(f.saving.ms)}</b>
            <span>{t('less a step')}</span>
          </div>
        ) : null}
      </div>
      <p>{shown(f.sentence)}</p>
      {f.change ? <p class="do">→ {shown(f.change)}</p> : null}
      {f.edits?.length ? (
        <>
          <h3 class="cap">{t('Lines to change')}</h3>
          <ul class="edits mono">
            {f.edits.map((e) => (
              <li key={editOf(e)}>
                <b>
                  {shown(e.file)}:{e.line}
                </b>{' '}
                {shown(e.source)}
              </li>
            ))}
          </ul>
        </>
      ) : null}
      <dl class="kv">
        {facts.map(([name, text, code]) =>
          text ? (
            <>
              <dt>{name}</dt>
              <dd class={code ? 'mono' : ''}>{shown(text)}</dd>
            </>
          ) : null,
        )}
      </dl>
      <div class="ft">
        {at ? (
          <button
            type="button"
            class="btn"
            onClick={() => {
              goTo(at.event, {
                view: 'timeline',
                device: f.place.device ? `${f.place.rank ?? 0}/${f.place.device}` : '',
                mode: '',
              })
            }}
          >
            {t('Go to the moment')} · {at.phase ? `${shown(at.phase)}, ` : ''}
            {t('event')} {count(at.event)}
          </button>
        ) : null}
        <button
          type="button"
          class="btn"
          onClick={() =>
            void navigator.clipboard
              .writeText(
                `**${f.title}** (${p.run})\n\n${f.sentence}\n\n` +
                  (f.change ? `Change: ${f.change}\n` : '') +
                  (f.edits ?? []).map((e) => `Line to change: \`${editOf(e)}\`\n`).join('') +
                  (line ? `Memory asked for by: \`${lineOf(f)!}\`\n` : ''),
              )
              .catch(() => undefined)
          }
        >
          {t('Copy as issue')}
        </button>
      </div>
    </article>
  )
}
