import { arrangeLines, handledText, handleText, type GateLine, type GateView } from '../model/gate-view.ts'
import { clockTime, dayTime } from '../model/status-view.ts'
import type { PageAlarmState } from '../model/wire.ts'
import { LanguageSwitch, ScreenButtons } from './frame.tsx'
import { LanePage, type LanePageProps } from './lane-page.tsx'
import { Picture, OperatorBar } from './operator.tsx'
import { GateIcons } from './icons.tsx'
import { ALARM_DISPOSITIONS } from '../../../policy/vocabulary.ts'
import type { Texts } from '../texts/texts.ts'

/** Dialog in which an operator says what an alarm was. */
function AlarmDialog({ texts }: { texts: Texts }) {
  const { steps } = texts.gate
  return (
    <dialog data-slot="alarm-dialog" aria-labelledby="alarm-title">
      <div class="dialog-head">
        <h2 id="alarm-title" data-slot="alarm-title" />
        <button type="button" data-slot="alarm-close">
          {texts.close}
        </button>
      </div>
      <p class="alarm-item">
        <strong data-slot="alarm-item" /> <span data-slot="alarm-why" />
      </p>
      <p class="alarm-known" role="status" data-slot="alarm-known" hidden />
      <p class="alert" role="alert" data-slot="alarm-error" />
      <div class="steps-of-alarm">
        <button type="button" class="main" data-slot="alarm-acknowledge" data-step="acknowledged">
          {steps.acknowledged}
        </button>
        <div class="alarm-theft">
          <label>
            {texts.gate.recovered}
            <input
              data-slot="recovered"
              placeholder={texts.gate.amountLike}
              inputmode="decimal"
              maxlength={10}
              autocomplete="off"
            />
          </label>
          <button type="button" data-step="real">
            {steps.real}
          </button>
        </div>
        {ALARM_DISPOSITIONS.filter((step) => step !== 'real').map((step) => (
          <button type="button" data-step={step}>
            {steps[step]}
          </button>
        ))}
      </div>
    </dialog>
  )
}

interface LineProps {
  line: GateLine & { state: PageAlarmState | undefined }
  isHidden: boolean
  texts: Texts
}

/** A line of the list; of an alarm, with what a person did about it. The page's script adds further ones. */
function Line({ line: { atMs, tone, text, isTextNeeded, item, tag, alarmId, state }, isHidden, texts }: LineProps) {
  return (
    <li
      data-tone={tone}
      data-at={atMs}
      data-tag={tag}
      data-alarm={alarmId}
      data-step={state?.step}
      data-needed={isTextNeeded || undefined}
      hidden={isHidden}
    >
      <time>{clockTime(atMs, texts.language)}</time> <span>{text}</span> <code>{item}</code>
      {alarmId === undefined ? null : (
        <>
          {' '}
          <span class="handled">{handledText(state, texts)}</span>{' '}
          <button type="button">{handleText(state?.step, texts)}</button>
        </>
      )}
    </li>
  )
}

interface GatePageProps extends LanePageProps {
  view: GateView
  /** Newest first. */
  lines: readonly GateLine[]
  /** True if open alarms are missing in `lines`. */
  isCut: boolean
  /** Start of the agent, with which the list begins. Wall clock. */
  startedMs: number
  /** What a person did about an alarm. */
  stateOf(alarmId: string): PageAlarmState | undefined
}

/**
 * The display at the gate, readable from a distance. Below it, a signed-in operator acknowledges alarms and says what
 * they were.
 */
export function GatePage(props: GatePageProps) {
  const { localization, operator, hasSounds, view, lines, startedMs, stateOf } = props
  const { texts } = localization
  const { shown, hidden, ...arranged } = arrangeLines(
    lines.map((line) => ({ ...line, state: line.alarmId === undefined ? undefined : stateOf(line.alarmId) })),
    ({ tag, alarmId, state }) => ({ tag, alarmId, step: state?.step }),
  )
  const isCut = props.isCut || arranged.isCut
  return (
    <LanePage kind="gate" page={props}>
      <main>
        <section class="stage" data-slot="stage" data-tone={view.tone} aria-labelledby="state">
          <GateIcons />
          <h2 class="headline" id="state" data-slot="headline">
            {view.headline}
          </h2>
          <p class="message" data-slot="message">
            {view.message}
          </p>
          <Picture name={view.item} hash={view.picture} />
          <p class="item" data-slot="item-line" hidden={view.item === ''}>
            <span data-slot="item">{view.item}</span>
          </p>
        </section>
        <p class="aloud" role="status" aria-live="assertive" aria-atomic="true" data-slot="aloud" />
      </main>
      <aside aria-labelledby="last">
        <div class="aside-head">
          <h2 id="last" data-slot="list-title">
            {texts.gate.lastDecisions}
          </h2>
          <OperatorBar name={operator} texts={texts} />
          <LanguageSwitch other={localization.other} />
          <ScreenButtons texts={texts} hasSounds={hasSounds} />
        </div>
        <ol data-slot="lines" data-cut={isCut || undefined}>
          {[...shown, ...hidden].map((line, n) => (
            <Line line={line} isHidden={n >= shown.length} texts={texts} />
          ))}
        </ol>
        <button type="button" class="more-open" data-slot="more-open" hidden />
        <p class="soft" data-slot="no-lines" hidden={lines.length > 0}>
          {texts.gate.noDecisions}
        </p>
        <p class="soft" data-slot="list-begin">
          {isCut ? texts.gate.listCut : texts.gate.listSince(dayTime(startedMs, texts.language))}
        </p>
      </aside>
      <AlarmDialog texts={texts} />
    </LanePage>
  )
}
