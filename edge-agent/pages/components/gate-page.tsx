import type { GateLine, GateView } from '../model/gate-view.ts'
import { clockTime } from '../model/clock-time.ts'
import { deviceTitle } from '../model/status-view.ts'
import type { PageDevice, PageStatus } from '../model/wire.ts'
import { Frame, LanguageSwitch, type FrameProps, type Localization } from './frame.tsx'
import { Header } from './header.tsx'
import { GateIcons } from './icons.tsx'

export interface GatePageProps {
  localization: Localization
  status: PageStatus
  device: PageDevice
  nowMs: number
  script?: FrameProps['script']
  view: GateView
  /** Newest first. */
  lines: readonly GateLine[]
}

/** The display at the gate, readable from a distance. Its only control switches the language. */
export function GatePage({ localization, status, device, nowMs, script, view, lines }: GatePageProps) {
  const { texts } = localization
  const title = deviceTitle(device, texts)
  return (
    <Frame
      title={`${title} · untag`}
      localization={localization}
      kind="gate"
      deviceId={device.deviceId}
      script={script}
    >
      <Header title={title} deviceId={device.deviceId} status={status} texts={texts} nowMs={nowMs} />
      <main>
        <section class="stage" data-slot="stage" data-tone={view.tone} aria-labelledby="state">
          <GateIcons />
          <h2 class="headline" id="state" data-slot="headline">
            {view.headline}
          </h2>
          <p class="message" data-slot="message">
            {view.message}
          </p>
          <p class="item" data-slot="item-line" hidden={view.item === ''}>
            {texts.gate.item} <code data-slot="item">{view.item}</code>
          </p>
        </section>
        <p class="aloud" role="status" aria-live="assertive" aria-atomic="true" data-slot="aloud" />
      </main>
      <aside aria-labelledby="last">
        <div class="aside-head">
          <h2 id="last">{texts.gate.lastDecisions}</h2>
          <LanguageSwitch other={localization.other} />
        </div>
        <ol data-slot="lines">
          {lines.map(({ atMs, tone, text, item }) => (
            <li data-tone={tone}>
              <time>{clockTime(atMs, texts.language)}</time> <span>{text}</span> <code>{item}</code>
            </li>
          ))}
        </ol>
        <p class="soft" data-slot="no-lines" hidden={lines.length > 0}>
          {texts.gate.noDecisions}
        </p>
      </aside>
    </Frame>
  )
}
