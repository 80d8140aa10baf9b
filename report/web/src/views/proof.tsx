import { count, mib, ms, percent, shown } from '../format'
import { t } from '../i18n'
import { about, current, docs, runs } from '../model'
import { svgPen, theme, type Cell } from '../pen'
import { state } from '../state'
import { Lead, Missing, Rows, Save } from '../ui'

/** Proof says for each run whether its recording was proved complete, and what recording cost. */
export function Proof() {
  const r = current(),
    list = docs.cost?.runs ?? []
  if (!r || !list.length)
    return (
      <>
        <Lead answer={t('nothing is known')} />
        <Missing what={about.missing.cost ?? ''} />
      </>
    )
  const verdict = r.main?.conservation.verdict ?? list.find((c) => c.run_id === r.id)?.verdict ?? 'unverifiable'
  const labelOf = (id: string) => runs.find((q) => q.id === id)?.label ?? id
  const rows = (): Cell[][] => [
    [
      'run',
      'verdict',
      'events',
      'missing_events',
      'residue_bytes',
      'peak_bytes',
      'torch_peak_bytes',
      'bare_step_ms',
      'instrumented_step_ms',
      'instrument_share',
      'drain_share',
      'collector_share',
    ],
    ...list.map((c): Cell[] => [
      labelOf(c.run_id),
      c.verdict,
      c.events,
      c.missing_events,
      c.residue_bytes,
      c.peak_bytes,
      c.torch_peak_bytes,
      c.bare_step_ms,
      c.instrumented_step_ms,
      c.instrument_share,
      c.drain_share,
      c.collector_share,
    ]),
  ]
  const svg = () => {
    const c = theme(),
      g = svgPen(900, 40 + list.length * 30, c.paper),
      most = Math.max(1e-9, ...list.map((q) => Math.abs(q.instrument_share ?? 0)))
    list.forEach((q, i) => {
      g.text(labelOf(q.run_id), 12, 30 + i * 30, c.ink)
      g.rect(260, 20 + i * 30, (Math.abs(q.instrument_share ?? 0) / most) * 460, 18, c.edge)
      g.text(q.instrument_share === null ? '—' : percent(q.instrument_share, 1), 888, 30 + i * 30, c.ink, 'right')
    })
    return g.done('What recording takes of a step')
  }
  const share = (v: number | null) => (v === null ? '—' : percent(v, 1))
  const reason = r.main?.conservation.reason
  return (
    <>
      <Lead
        answer={
          verdict === 'exact'
            ? t('Every byte of {run} is accounted for', { run: shown(r.label) })
            : t('{run} is not exact: {verdict}', { run: shown(r.label), verdict: shown(verdict) })
        }
      >
        {t(
          'Exact: the replay of all events has the allocator’s own count at every checkpoint, and the categories sum to it.',
        )}{' '}
        {reason ? shown(reason) : ''}
      </Lead>
      <div class="bar">
        <Save name="dpsight-proof" svg={svg} rows={rows} />
      </div>
      {state.table ? (
        <Rows rows={rows()} />
      ) : (
        <div class="stack">
          <div class="panel heatwrap" tabIndex={0} role="region" aria-label={t('Conservation')}>
            <table>
              <caption class="cap">{t('Conservation')}</caption>
              <thead>
                <tr>
                  <th>{t('Run')}</th>
                  <th>{t('verdict')}</th>
                  <th class="num">{t('Events')}</th>
                  <th class="num">{t('missing')}</th>
                  <th class="num">{t('residue')}</th>
                  <th class="num">{t('Peak allocated')}</th>
                  <th class="num">torch</th>
                </tr>
              </thead>
              <tbody>
                {list.map((c) => (
                  <tr key={c.run_id} class={c.run_id === r.id ? 'on' : ''}>
                    <td>
                      <b>{shown(labelOf(c.run_id))}</b>
                    </td>
                    <td>
                      <span class={`tag ${c.verdict === 'exact' ? 'ok' : c.verdict ? 'warn' : ''}`}>
                        {c.verdict === 'exact' ? '✓ exact' : c.verdict ? `◇ ${shown(c.verdict)}` : '—'}
                      </span>
                    </td>
                    <td class="num">{c.events === null ? '—' : count(c.events)}</td>
                    <td class="num">{c.missing_events ?? '—'}</td>
                    <td class="num">{c.residue_bytes === null ? '—' : `${count(c.residue_bytes)} B`}</td>
                    <td class="num">{mib(c.peak_bytes)}</td>
                    <td
                      class={`num ${c.peak_bytes === null || c.torch_peak_bytes === null || c.torch_peak_bytes === c.peak_bytes ? '' : 'warn'}`}
                    >
                      {mib(c.torch_peak_bytes)}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <div class="panel heatwrap" tabIndex={0} role="region" aria-label={t('Cost of recording')}>
            <table>
              <caption class="cap">{t('Cost of recording')}</caption>
              <thead>
                <tr>
                  <th>{t('Run')}</th>
                  <th class="num">{t('bare step')}</th>
                  <th class="num">{t('instrumented step')}</th>
                  <th class="num">{t('more')}</th>
                  <th class="num">{t('% of a step')}</th>
                  <th class="num">{t('drains')}</th>
                  <th class="num">{t('collector, of a core')}</th>
                </tr>
              </thead>
              <tbody>
                {list.map((c) => (
                  <tr key={c.run_id}>
                    <td>
                      <b>{shown(labelOf(c.run_id))}</b>
                    </td>
                    <td class="num">{ms(c.bare_step_ms)}</td>
                    <td class="num">{ms(c.instrumented_step_ms)}</td>
                    <td class="num">{ms(c.instrument_ms)}</td>
                    <td class="num">{share(c.instrument_share)}</td>
                    <td class="num">{share(c.drain_share)}</td>
                    <td class="num">{share(c.collector_share)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </div>
      )}
    </>
  )
}
