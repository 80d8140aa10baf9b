import { render } from 'preact'
import { useEffect, useReducer, useRef, useState } from 'preact/hooks'
import { about as readAbout, documents } from './data'
import { count, mib, percent, shown } from './format'
import { t } from './i18n'
import { arrived, about, baseline, current, currentDevice, devicesOf, docs, load, pending, runs } from './model'
import { follow, live } from './live'
import { served } from './source'
import { onChange, set, shownHere, state, toHash, type View } from './state'
import { Loading, Pick } from './ui'
import { axisKeys } from './views/timeline'
import { Blocks } from './views/blocks'
import { Breakdown } from './views/breakdown'
import { Compare } from './views/compare'
import { Findings } from './views/findings'
import { Modules } from './views/modules'
import { Phases } from './views/phases'
import { Proof } from './views/proof'
import { Live } from './views/live'
import { Hits } from './search'
import { Runs } from './views/runs'
import { Timeline } from './views/timeline'
import './style.css'

const shownViews: Record<View, [string, () => preact.JSX.Element]> = {
  runs: ['Runs', Runs],
  breakdown: ['Breakdown', Breakdown],
  timeline: ['Timeline', Timeline],
  blocks: ['Blocks', Blocks],
  modules: ['Modules', Modules],
  compare: ['Compare', Compare],
  findings: ['Findings', Findings],
  phases: ['Phases', Phases],
  proof: ['Proof', Proof],
  live: ['Live', Live],
}
const order = shownHere
const later = new Set<View>(['compare', 'findings', 'phases', 'proof']) // views whose documents do not come first

function countOf(v: View): number | null {
  if (v === 'runs') return runs.length
  if (v === 'live') return live.rows.filter((r) => !r.ended).length
  if (v === 'findings') return docs.findings?.runs.find((r) => r.run_id === current()?.id)?.findings.length ?? 0
  return null
}

function App() {
  const [, again] = useReducer((n: number) => n + 1, 0),
    [keys, setKeys] = useState(false)
  const search = useRef<HTMLInputElement>(null)
  useEffect(() => {
    const draw = () => {
      again(0)
    }
    onChange(draw)
    addEventListener('resize', draw)
  }, [])
  useEffect(() => {
    const press = (e: KeyboardEvent) => {
      const at = e.target as HTMLElement
      if (e.ctrlKey || e.metaKey || e.altKey) return
      if (at.matches('input:not([type=checkbox]), select, textarea')) {
        if (e.key === 'Escape') at.blur()
        return
      }
      if (pressed(e)) e.preventDefault()
    }
    const pressed = (e: KeyboardEvent): boolean => {
      const n = e.key === '0' ? 10 : Number(e.key)
      if (n >= 1 && n <= order.length) {
        set({ view: order[n - 1], mode: '' })
        return true
      }
      switch (e.key) {
        case '/':
          search.current?.focus()
          return true
        case '?':
          setKeys(true)
          return true
        case 't':
          set({ theme: state.theme === 'dark' ? 'light' : 'dark' })
          return true
        case 'T':
          set({ table: !state.table })
          return true
        case 'l':
          set({ lang: state.lang === 'zh' ? 'en' : 'zh' })
          return true
        case 'b': {
          const r = current()
          if (r?.main) set({ base: r.label })
          return true
        }
        case 'y':
          copyLink()
          return true
      }
      if (state.view !== 'timeline' && state.view !== 'blocks') return false
      if (e.key.startsWith('Arrow') && (e.target as HTMLElement).matches('[role=tab]')) return false
      return axisKeys(e)
    }
    addEventListener('keydown', press)
    return () => {
      removeEventListener('keydown', press)
    }
  }, [])
  // Writing the same value again would recompute the whole document's style.
  const root = document.documentElement,
    lang = state.lang === 'zh' ? 'zh-Hans' : 'en'
  if (root.dataset.theme !== state.theme) root.dataset.theme = state.theme
  if (root.lang !== lang) root.lang = lang
  const View = pending && later.has(state.view) ? Loading : shownViews[state.view][1],
    devices = devicesOf(current()),
    at = currentDevice()
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(e) => {
          e.preventDefault()
          document.getElementById('main')?.focus()
        }}
      >
        {t('Skip to the view')}
      </a>
      <header class="top">
        <div class="mark">
          <svg width="22" height="22" viewBox="0 0 22 22" aria-hidden="true">
            <rect x="1" y="14" width="20" height="7" fill="#204d8b" />
            <rect x="1" y="9" width="20" height="5" fill="#e16114" />
            <path d="M1 9V7l6-4 7 3 7-4v7z" fill="#58b793" />
            <path d="M14 1v20" stroke="currentColor" stroke-width="1.4" />
          </svg>
          dpsight
        </div>
        <Pick
          label={t('Run')}
          value={current()?.label ?? ''}
          options={runs.map((r) => [r.label, shown(r.label)])}
          pick={(run) => {
            set({ run, device: '', from: null, to: null, event: null, a: null, b: null })
          }}
        />
        {devices.length > 1 ? (
          <Pick
            label=""
            value={at ? `${at.meta.rank}/${at.meta.device}` : ''}
            pick={(device) => {
              set({ device, from: null, to: null, event: null })
            }}
            options={devices.map((d) => [`${d.meta.rank}/${d.meta.device}`, `rank ${d.meta.rank}, ${d.meta.device}`])}
          />
        ) : null}
        <Pick
          class="base"
          label={t('Baseline')}
          value={baseline()?.label ?? ''}
          pick={(base) => {
            set({ base })
          }}
          options={runs.filter((r) => r.main).map((r) => [r.label, shown(r.label)])}
        />
        <span class="sp2" />
        <div class="search" role="search">
          <input
            ref={search}
            aria-label={t('Search runs, modules, lines')}
            value={state.query}
            placeholder={t('Search runs, modules, lines')}
            onInput={(e) => {
              set({ query: e.currentTarget.value })
            }}
          />
          <kbd class="deskonly">/</kbd>
          <Hits />
        </div>
        <button class="ib deskonly" type="button" onClick={copyLink}>
          {t('Link')}
        </button>
        <button
          class="ib"
          type="button"
          onClick={() => {
            set({ lang: state.lang === 'zh' ? 'en' : 'zh' })
          }}
        >
          {state.lang === 'zh' ? 'English' : '中文'}
        </button>
        <button
          class="ib"
          type="button"
          aria-label={t('light or dark')}
          onClick={() => {
            set({ theme: state.theme === 'dark' ? 'light' : 'dark' })
          }}
        >
          ◐
        </button>
        <button
          class="ib"
          type="button"
          aria-label={t('Keys')}
          onClick={() => {
            setKeys(true)
          }}
        >
          ?
        </button>
      </header>
      <nav role="tablist" aria-label="Views">
        {order.map((v, i) => (
          <button
            key={v}
            type="button"
            role="tab"
            id={`tab-${v}`}
            aria-controls="panel"
            aria-selected={state.view === v}
            tabIndex={state.view === v ? 0 : -1}
            onClick={() => {
              set({ view: v, mode: '' })
            }}
            onKeyDown={(e) => {
              const step = e.key === 'ArrowRight' ? 1 : e.key === 'ArrowLeft' ? -1 : 0
              if (!step) return
              const next = order[(i + step + order.length) % order.length]
              set({ view: next, mode: '' })
              document.getElementById(`tab-${next}`)?.focus()
            }}
          >
            <kbd>{(i + 1) % 10}</kbd>
            {t(shownViews[v][0])}
            {countOf(v) === null ? null : <span class="n">{countOf(v)}</span>}
          </button>
        ))}
      </nav>
      <main id="main" tabIndex={-1}>
        <div role="tabpanel" id="panel" aria-labelledby={`tab-${state.view}`}>
          <View />
        </div>
      </main>
      <Strip />
      {keys ? (
        <Keys
          close={() => {
            setKeys(false)
          }}
        />
      ) : null}
    </>
  )
}

function copyLink() {
  void navigator.clipboard.writeText(location.href.replace(/#.*$/, '') + toHash(state)).catch(() => undefined)
}

/** Shows on every view whether the recording was proved complete and, if it is not exact, why. */
function Strip() {
  const r = current(),
    cost = docs.cost?.runs.find((c) => c.run_id === r?.id),
    verdict = r?.main?.conservation.verdict ?? cost?.verdict
  const beside =
    cost?.peak_bytes == null || !cost.events
      ? 'torch’s own peak'
      : cost.torch_peak_bytes === cost.peak_bytes
        ? 'equals torch’s own peak'
        : 'differs from torch’s own peak'
  return (
    <footer class={`foot ${verdict === 'exact' ? '' : 'amber'}`}>
      <span>
        {t('conservation')} <b>{verdict ?? '—'}</b>, {t('residue')}{' '}
        <b>{r?.main ? `${count(r.main.conservation.residue_bytes)} B` : '—'}</b>
      </span>
      <span>
        <b>{cost?.events == null ? '—' : count(cost.events)}</b> {t('Events').toLowerCase()},{' '}
        <b>{cost?.missing_events ?? '—'}</b> {t('missing')}
      </span>
      {cost?.torch_peak_bytes == null ? null : (
        <span>
          {t(beside)} <b>{mib(cost.torch_peak_bytes)}</b>
        </span>
      )}
      {cost?.instrument_share == null ? null : (
        <span>
          {t('recording took')} <b>{percent(cost.instrument_share, 1)}</b> {t('of a step')}
        </span>
      )}
      <span>{t(served ? 'nothing leaves this machine' : 'no request leaves this file')}</span>
    </footer>
  )
}

const keyList: [string, string][] = [
  ['1–9', 'views'],
  ['/', 'search'],
  ['t', 'theme'],
  ['l', 'language'],
  ['b', 'make the run the baseline'],
  ['y', 'copy the link'],
  ['Shift T', 'chart or table'],
  ['← →', 'one event (Shift: 100)'],
  ['w s', 'zoom'],
  ['a d', 'pan'],
  ['f', 'all events'],
  ['p', 'the peak'],
  ['n', 'next new maximum'],
  ['[ ]', 'set A, B'],
  ['Esc', 'clear'],
  ['Shift drag', 'pan'],
]

function Keys(p: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    dialog.current?.showModal()
  }, [])
  return (
    <dialog ref={dialog} onClose={p.close} aria-label={t('Keys')}>
      <h2>
        {t('Keys')}{' '}
        <button class="btn" type="button" onClick={() => dialog.current?.close()}>
          {t('Close')}
        </button>
      </h2>
      <ul class="keys">
        {keyList.map(([k, what]) => (
          <li key={k}>
            <span>{t(what)}</span>
            <kbd>{k}</kbd>
          </li>
        ))}
      </ul>
    </dialog>
  )
}

/** Whether neither the address nor the reader has chosen a view. */
let bare = location.hash.length < 2
for (const chosen of ['hashchange', 'pointerdown', 'keydown'])
  addEventListener(chosen, () => {
    bare = false
  })
const read = async (first: boolean) => {
  const [a, d] = await Promise.all([readAbout(first), documents(first)])
  load(a, d, first)
  document.title = about.title || 'dpsight'
  set({})
}
const readAll = () => read(served).then(() => (served ? read(false) : undefined))

read(served).then(
  () => {
    render(<App />, document.getElementById('app')!)
    // The server answers faster if it does not read all other documents at the same time.
    if (served) void arrived().then(() => read(false))
    follow(
      () => state.view === 'live',
      () => {
        // A reader who opens the page during a recording wants to see the Live view, unless the address names a view.
        set(bare && live.rows.some((r) => !r.ended) ? { view: 'live' } : {})
        bare = false
      },
      () => {
        void readAll()
      },
    )
  },
  (e: unknown) => {
    const what = served ? 'The server says' : 'This file cannot be read'
    document.getElementById('app')!.textContent = `${what}: ${String(e)}`
  },
)
