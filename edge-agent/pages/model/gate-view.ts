import type { Texts } from '../texts/texts.ts'
import { withStatus } from './result-view.ts'
import type { GateLight, LiveEvent, PageAnswer } from './wire.ts'

/**
 * ready: no shopper · green: may leave · amber: see staff · alarm: an unpaid tag leaves ·
 * lost: no connection to the agent
 */
export type GateTone = 'ready' | 'green' | 'amber' | 'alarm' | 'lost'

/** Content of the display at the gate, for shoppers and staff. */
export interface GateView {
  tone: GateTone
  headline: string
  message: string
  /** The leaving tag; '' if unknown. */
  item: string
  seconds: number
}

/** One line in the list of the last decisions. */
export interface GateLine {
  atMs: number
  tone: GateTone
  text: string
  item: string
}

/** Maximum lines in the list of the last decisions. */
export const GATE_LINES = 5

const SECONDS: Record<GateTone, number> = { ready: 0, green: 5, amber: 8, alarm: 20, lost: 0 }

/** Minimum time of an alarm on the display, ms. Paid goods in the same bag must not replace the alarm. */
const ALARM_MINIMUM_MS = 8_000

/** True if a new view may replace the view on the display. */
export function replaces(next: GateTone, shown: GateTone, shownForMs: number): boolean {
  return shown !== 'alarm' || next === 'alarm' || shownForMs >= ALARM_MINIMUM_MS
}

type GateResult = LiveEvent & { type: 'result' }

/** View without a result. */
export function gateReady(texts: Texts): GateView {
  return { tone: 'ready', headline: texts.gate.ready, message: texts.gate.readyHint, item: '', seconds: SECONDS.ready }
}

/** View without a connection to the agent. */
export function gateLost(texts: Texts): GateView {
  return { tone: 'lost', headline: texts.gate.lost, message: texts.gate.lostHint, item: '', seconds: SECONDS.lost }
}

/** Makes the view of a result. Undefined if the gate showed no light. */
export function gateView({ result, light }: GateResult, texts: Texts): GateView | undefined {
  if (result.kind !== 'not_understood' && result.kind !== 'decision') return undefined
  if (result.kind === 'not_understood') {
    return {
      tone: 'amber',
      headline: texts.gate.amber,
      message: texts.notUnderstood[result.why].what,
      item: '',
      seconds: SECONDS.amber,
    }
  }
  const tone = toneOf(result.answer, light)
  if (!tone) return undefined
  const message =
    tone === 'green' ? texts.gate.greenHint : tone === 'alarm' ? reasonOf(result.answer, texts) : texts.gate.amberHint
  return {
    tone,
    headline: texts.gate[tone],
    message,
    item: tone === 'alarm' ? (result.item ?? '') : '',
    seconds: SECONDS[tone],
  }
}

/** Makes the line for the list of the last decisions, which staff read. */
export function gateLine(event: GateResult, texts: Texts): GateLine | undefined {
  const view = gateView(event, texts)
  const { result } = event
  if (!view || (result.kind !== 'decision' && result.kind !== 'not_understood')) return undefined
  const text = result.kind === 'decision' ? reasonOf(result.answer, texts) : texts.notUnderstood[result.why].what
  return { atMs: event.atMs, tone: view.tone, text, item: result.kind === 'decision' ? (result.item ?? '') : '' }
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
  return withStatus(texts.reasons[reason].what, itemStatus, texts)
}
