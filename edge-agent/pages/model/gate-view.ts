import type { AlarmStep } from '../../../policy/vocabulary.ts'
import type { Texts } from '../texts/texts.ts'
import { withStatus } from './result-view.ts'
import type { GateLight, LiveEvent, PageAlarmState, PageAnswer, PageResult, PageStatus } from './wire.ts'

/**
 * ready: no shopper · green: may leave · amber: see staff · alarm: an unpaid tag leaves ·
 * lost: no connection to the agent · way_out: open in an emergency
 */
export type GateTone = 'ready' | 'green' | 'amber' | 'alarm' | 'lost' | 'way_out'

/** Content of the display at the gate, for shoppers and staff. */
export interface GateView {
  tone: GateTone
  headline: string
  message: string
  /** Product of the leaving tag, or else the tag; '' if unknown. */
  item: string
  /** Hash of the product's small picture; '' if the agent has none. */
  picture: string
  seconds: number
}

/** One line in the list of the last decisions. */
export interface GateLine {
  atMs: number
  tone: GateTone
  text: string
  /** True if staff must read the text although the stage has shown it: the goods stay here, or there is an emergency. */
  isTextNeeded: boolean
  item: string
  /** The tag, which tells apart alarms of the same product. '' if unknown. */
  tag: string
  /** Id of the alarm, if an operator may handle it. */
  alarmId?: string
}

/** Lines that a screen of 600 px shows without scrolling. Open alarms take their places first. */
const LINES_SHOWN = 5
/** Maximum open alarms in the list. */
export const OPEN_KEPT = 100

/** What a line is in the list. */
interface GateLineFacts {
  readonly tag: string
  readonly alarmId: string | undefined
  readonly step: AlarmStep | undefined
}

/**
 * Arranges the lines of a gate, which come with the newest first: open alarms, then the last other decisions. An alarm is
 * open until its cause is recorded, or its tag has a newer one, as in the console. `openCount`: number of open alarms,
 * with which `shown` begins. `hidden`: decisions for when alarms are handled. Older lines are forgotten. `isCut`: open
 * alarms are among them.
 */
export function arrangeLines<T>(lines: readonly T[], factsOf: (line: T) => GateLineFacts) {
  const tags = new Set<string>()
  const open: T[] = []
  const others: T[] = []
  for (const line of lines) {
    const { tag, alarmId, step } = factsOf(line)
    const isNewest = tag === '' || !tags.has(tag)
    if (alarmId !== undefined) tags.add(tag)
    const isOpen = alarmId !== undefined && isNewest && (step === undefined || step === 'acknowledged')
    ;(isOpen ? open : others).push(line)
  }
  const kept = open.slice(0, OPEN_KEPT)
  const room = Math.max(0, LINES_SHOWN - kept.length)
  return {
    shown: [...kept, ...others.slice(0, room)],
    hidden: others.slice(room, LINES_SHOWN),
    openCount: kept.length,
    isCut: open.length > kept.length,
  }
}

const SECONDS: Record<GateTone, number> = { ready: 0, green: 5, amber: 8, alarm: 20, lost: 0, way_out: 0 }

/** Minimum time of an alarm on the display, ms. Paid goods in the same bag must not replace the alarm. */
const ALARM_MINIMUM_MS = 8_000

/** True if a new view may replace the view on the display. */
export function replaces(next: GateTone, shown: GateTone, shownForMs: number): boolean {
  return shown !== 'alarm' || next === 'alarm' || shownForMs >= ALARM_MINIMUM_MS
}

type GateResult = LiveEvent & { type: 'result' }

/** View without a result. */
export function gateReady(texts: Texts): GateView {
  return {
    tone: 'ready',
    headline: texts.gate.ready,
    message: texts.gate.readyHint,
    item: '',
    picture: '',
    seconds: SECONDS.ready,
  }
}

/** True if an emergency opened this gate. Then people must only see the way out. */
export function isWayOut({ emergency }: Pick<PageStatus, 'emergency'>, deviceId: string): boolean {
  return emergency?.opened.includes(deviceId) === true
}

/** View without a result. A gate that may be blind must not look ready: it, and each reader that feeds it, is `ready`. */
export function gateRest(
  { devices, emergency }: Pick<PageStatus, 'devices' | 'emergency'>,
  deviceId: string,
  texts: Texts,
): GateView {
  if (isWayOut({ emergency }, deviceId))
    return { ...gateReady(texts), tone: 'way_out', headline: texts.gate.wayOut, message: texts.gate.wayOutHint }
  if (emergency)
    return {
      ...gateReady(texts),
      tone: 'amber',
      headline: texts.emergency.title,
      message: texts.emergency.leaveElsewhere,
    }
  const isReady = devices
    .filter((device) => device.deviceId === deviceId || device.feeds === deviceId)
    .every(({ state }) => state === 'ready')
  if (isReady) return gateReady(texts)
  return { ...gateReady(texts), tone: 'amber', headline: texts.gate.amber, message: texts.gate.outHint }
}

/** View without a connection to the agent. */
export function gateLost(texts: Texts): GateView {
  return {
    tone: 'lost',
    headline: texts.gate.lost,
    message: texts.gate.lostHint,
    item: '',
    picture: '',
    seconds: SECONDS.lost,
  }
}

/** Makes the view of a result. Undefined if the gate showed no light. */
export function gateView(
  { result, light }: Pick<GateResult, 'result' | 'light'> & Partial<GateResult>,
  texts: Texts,
): GateView | undefined {
  if (result.kind !== 'not_understood' && result.kind !== 'decision') return undefined
  if (result.kind === 'not_understood') {
    return {
      tone: 'amber',
      headline: texts.gate.amber,
      message: texts.notUnderstood[result.why].what,
      item: '',
      picture: '',
      seconds: SECONDS.amber,
    }
  }
  const tone = toneOf(result.answer, light)
  if (!tone) return undefined
  const hints = { green: texts.gate.greenHint, alarm: reasonOf(result.answer, texts), amber: amberHint(result, texts) }
  return {
    tone,
    headline: texts.gate[tone],
    message: hints[tone],
    item: tone === 'alarm' ? (result.product ?? result.item ?? '') : '',
    picture: tone === 'alarm' ? (result.picture ?? '') : '',
    seconds: SECONDS[tone],
  }
}

/** Only to a shopper who shows a receipt, the display says why and what to do. It tells the others about no tag. */
function amberHint({ answer, item, product }: Extract<PageResult, { kind: 'decision' }>, texts: Texts): string {
  const isOfTag = item !== undefined || product !== undefined
  if (isOfTag || answer.reason === undefined) return texts.gate.amberHint
  const { todo } = texts.reasons[answer.reason]
  return answer.reason === 'recalled' ? reasonOf(answer, texts) : `${reasonOf(answer, texts)} ${todo}`
}

/** Makes the line for the list of the last decisions, which staff read. */
export function gateLine(event: GateResult, texts: Texts): GateLine | undefined {
  const view = gateView(event, texts)
  const { result } = event
  if (!view || (result.kind !== 'decision' && result.kind !== 'not_understood')) return undefined
  const { item: tag = '', product, alarmId, emergency } = result.kind === 'decision' ? result : {}
  const stays = result.kind === 'decision' ? whyItStays(result.answer, texts) : undefined
  const what = result.kind === 'decision' ? reasonOf(result.answer, texts) : texts.notUnderstood[result.why].what
  return {
    atMs: event.atMs,
    tone: view.tone,
    text: [...(emergency ? [texts.gate.inEmergency] : []), stays ?? what].join(' · '),
    isTextNeeded: emergency === true || stays !== undefined,
    item: product ?? tag,
    tag,
    ...(alarmId !== undefined && { alarmId }),
  }
}

/** Why staff keep the goods whatever receipt the shopper has. Undefined if a receipt may let them go. */
function whyItStays({ authorized, reason, itemStatus }: PageAnswer, { gate }: Texts): string | undefined {
  if (authorized) return undefined
  if (reason === 'recalled') return gate.recalled
  return itemStatus === 'exception_hold' ? gate.held : undefined
}

/** Describes what a person did about an alarm. '' if it is open. */
export function handledText(state: PageAlarmState | undefined, texts: Texts): string {
  if (!state) return ''
  if (state.step === 'acknowledged') return texts.gate.careBy(state.by)
  const cause = texts.gate.steps[state.step]
  return state.by === '' ? cause : `${cause} · ${state.by}`
}

/** What the button of an alarm does. */
export function handleText(step: AlarmStep | undefined, { gate }: Texts): string {
  return step === undefined || step === 'acknowledged' ? gate.handle : gate.change
}

function toneOf(answer: PageAnswer, light: GateLight | undefined): 'green' | 'amber' | 'alarm' | undefined {
  if (light === null) return undefined
  if (light === 'siren') return 'alarm'
  // A gate that stayed closed must not show green.
  const isOpen = answer.outcome !== 'failed' && answer.outcome !== 'unknown'
  return answer.authorized && isOpen && light !== 'amber' ? 'green' : 'amber'
}

function reasonOf({ authorized, action, outcome, reason, itemStatus }: PageAnswer, texts: Texts): string {
  if (authorized) return outcome === 'failed' || outcome === 'unknown' ? texts.gate.stuck : texts.granted[action]
  if (reason === undefined) return texts.noReason
  const { what, todo } = texts.reasons[reason]
  // Staff who come to the alarm must know that these goods may not leave although they are paid.
  return reason === 'recalled' ? `${what} ${todo}` : withStatus(what, itemStatus, texts)
}

/** Maximum different goods that the display names. */
const GOODS_LIMIT = 4

/**
 * Lists the goods of alarms that the display shows together, such as "2 × jacket, scarf + 3 more": first with as many
 * names as a large display has room for, then with fewer.
 */
export function goodsTexts(items: readonly string[], texts: Texts): string[] {
  const counts = new Map<string, number>()
  for (const item of items) if (item !== '') counts.set(item, (counts.get(item) ?? 0) + 1)
  const words = [...counts].map(([item, count]) => (count > 1 ? `${count} × ${item}` : item))
  const firstOf = (limit: number) => {
    const others = [...counts.values()].slice(limit).reduce((sum, count) => sum + count, 0)
    return `${words.slice(0, limit).join(', ')}${others > 0 ? ` ${texts.andMore(others)}` : ''}`
  }
  return Array.from({ length: Math.min(GOODS_LIMIT, words.length) }, (_, n) => firstOf(n + 1)).toReversed()
}

/** Cents of an amount such as `49,90` that a person typed. Undefined if the text is empty, null if it is no amount. */
export function centsIn(text: string): number | undefined | null {
  if (text.trim() === '') return undefined
  const [, euros, cents = ''] = /^\s*(\d{1,6})(?:[.,](\d{1,2}))?\s*€?\s*$/.exec(text) ?? []
  return euros === undefined ? null : Number(euros) * 100 + Number(cents.padEnd(2, '0'))
}
