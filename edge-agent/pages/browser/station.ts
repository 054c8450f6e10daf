import { LONGEST_SCAN, SILENCE_MS, typedBurst } from '../model/typed-burst.ts'
import { resultView, type ResultView } from '../model/result-view.ts'
import type { LiveEvent, PageResult, PageStatus } from '../model/wire.ts'
import type { Advice } from '../texts/texts.ts'
import { sendScan } from './api.ts'
import { keepAwake, offerFullScreen } from './screen.ts'
import { openSound } from './sound.ts'
import { openHeader } from './header.ts'
import { returnToOwnLanguage } from './language.ts'
import { reloadIfOutdated, listen } from './live.ts'
import { openOperator } from './operator.ts'
import { readPageContext, readRecent, slot } from './elements.ts'
import { after, now } from './platform.ts'
import { SignIn } from './sign-in.ts'
import { openStage } from './stage.ts'

/**
 * Receives the scans of a keyboard-wedge scanner, whichever element has the focus. Hides the key presses of the scanner
 * from buttons and fields.
 */
function listenForScans(onScan: (text: string) => void): void {
  const burst = typedBurst()
  let cancelSilence = () => {}
  document.addEventListener(
    'keydown',
    (event) => {
      // Some layouts type an @ with AltGr. Key presses with other modifier keys are shortcuts of the browser.
      const isChord = (event.ctrlKey || event.altKey || event.metaKey) && !event.getModifierState('AltGraph')
      if (isChord || event.isComposing || event.repeat) return
      const field = event.target instanceof HTMLInputElement ? event.target : undefined
      cancelSilence()
      cancelSilence = after(SILENCE_MS, () => {
        const verdict = burst.onSilence(field !== undefined)
        if (verdict.do === 'scan') onScan(verdict.text)
      })
      const verdict = burst.onKey({ key: event.key, atMs: event.timeStamp, inField: field !== undefined })
      if (verdict.do === 'pass') return
      event.preventDefault()
      event.stopPropagation()
      if (verdict.do !== 'scan') return
      if (field) field.value = ''
      onScan(verdict.text)
    },
    { capture: true },
  )
}

/**
 * Script of the station page. The script sends scans, typed codes and button presses with POST /v1/scan, and shows the
 * results. Results of the device's own scanner arrive as events.
 */
const context = readPageContext()
const { deviceId, texts } = context
const header = openHeader(context)
const stage = openStage(texts, forgetScan)
const play = openSound(context)
const operator = openOperator(context, slot('operator-name').dataset['name'] ?? null, header.setStaff)
const signIn = new SignIn(context, operator)

const underWay = new Set<string>()
/** Results that arrived as events during a request. */
const postponed: PageResult[] = []
/** The last shown result. This page receives its own results twice, because the agent also sends them as events. */
let shown = { key: '', atMs: 0 }
const SAME_RESULT_MS = 3_000
/** After this time without an answer the page asks whether the agent is there, ms. */
const SLOW_MS = 2_000

/**
 * Sends a scan. `byHand`: a person typed the text or pressed a button, which restarts the operator's idle time. Returns
 * false if the agent did not answer.
 */
async function scan(raw: string, byHand: boolean): Promise<boolean> {
  const text = raw.trim()
  // Ignores a code whose request is still running: the scanner has read it twice.
  if (text === '' || underWay.has(text)) return true
  if (text.length > LONGEST_SCAN) {
    stage.show(fault({ what: texts.tooLong, todo: '' }), '')
    return true
  }
  underWay.add(text)
  signIn.close()
  stage.busy()
  // The header then says whether the agent is there, while a device may still be busy.
  const cancel = after(SLOW_MS, askAgent)
  const answer = await sendScan(deviceId, text, byHand)
  cancel()
  underWay.delete(text)
  if (answer.ok) show(answer.body, text)
  // The shopper reads this. Staff read the cause in the header.
  else stage.show(fault(texts.notChecked), '')
  for (const result of postponed.splice(0)) show(result)
  return answer.ok || answer.fault !== 'unreachable'
}

function fault({ what, todo }: Advice): ResultView {
  return {
    tone: 'staff',
    headline: texts.callStaff,
    product: '',
    picture: '',
    left: '',
    next: '',
    shorterNext: [],
    message: what,
    advice: todo,
    again: null,
    seconds: 20,
  }
}

/** Shows a result. `text`: the text that this page sent; absent for a scan of the device's own scanner. */
function show(result: PageResult, text?: string): void {
  const view = resultView(result, texts)
  if (result.kind === 'operator') operator.setName(result.name)
  // A sign-in has no view, because the footer shows the operator.
  if (!view) return stage.idle()
  const key = JSON.stringify(result)
  const isSame = key === shown.key && now() - shown.atMs < SAME_RESULT_MS
  if (isSame && text === undefined) return
  shown = { key, atMs: now() }
  play(view.tone)
  rememberScan({ key, text })
  stage.show(view, noteFor(view, result, text), againFor(view, text))
}

/** The last scan of this tab, so that a reload can go on: its result, and its text until the result is gone. */
interface LastScan {
  readonly key: string
  readonly text?: string | undefined
  /** True if the result was left, so that it does not appear again. */
  readonly isDone?: boolean
}
const LAST_SCAN = 'untag-last-scan'

function rememberScan(scan: LastScan): void {
  sessionStorage.setItem(LAST_SCAN, JSON.stringify(scan))
}

function forgetScan(): void {
  rememberScan({ key: shown.key, isDone: true })
}

/** Shows the result that was on this lane before the page was loaded again, for the rest of its time. */
function restore(): void {
  const last = readRecent().at(-1)
  const view = last && resultView(last.result, texts)
  if (!last || !view || last.ageMs >= view.seconds * 1_000) return
  const key = JSON.stringify(last.result)
  const scanned = JSON.parse(sessionStorage.getItem(LAST_SCAN) ?? '{}') as Partial<LastScan>
  const { text, isDone = false } = scanned.key === key ? scanned : {}
  if (isDone) return
  shown = { key, atMs: now() - last.ageMs }
  stage.show(view, noteFor(view, last.result, text), againFor(view, text), last.ageMs)
}

function noteFor(view: ResultView, result: PageResult, text: string | undefined): string {
  // This page does not have the text that the device's own scanner read, so the operator must scan again.
  const badge = view.again === 'approve' && text === undefined ? texts.approveThenScan : ''
  const offline = result.kind === 'decision' && result.answer.offline ? texts.decidedOffline : ''
  return [badge, offline].filter((part) => part !== '').join(' ')
}

function againFor(view: ResultView, text: string | undefined): (() => void) | undefined {
  const retry = text === undefined ? undefined : () => void scan(text, true)
  if (view.again !== 'approve' && view.again !== 'sign_in') return retry
  return operator.isSignedIn ? undefined : () => signIn.open(retry)
}

function onEvent(event: LiveEvent): void {
  if (event.type === 'status') return setStatus(event.status)
  if (event.deviceId !== deviceId || event.type === 'person' || event.type === 'alarm') return
  // During a request, postpones results that arrive as events, because the answer may contain the same result.
  if (event.type === 'result') return underWay.size > 0 ? void postponed.push(event.result) : show(event.result)
  operator.setName(event.name)
  if (!signIn.isWaiting) signIn.close()
}

let wasLost = false
let isEmergency = false

function setStatus(status: PageStatus): void {
  header.setStatus(status)
  if (isEmergency === (status.emergency !== null)) return
  isEmergency = status.emergency !== null
  // People must leave: nothing covers that, no result, no dialog.
  if (isEmergency) signIn.close()
  stage.take(isEmergency ? { ...fault(texts.emergency.leave), headline: texts.emergency.title } : undefined)
}

const askAgent = listen({
  onEvent,
  onLink(isLost, heardMs) {
    header.setLost(isLost, heardMs)
    if (wasLost && !isLost) void reloadIfOutdated().then(operator.refresh)
    wasLost = isLost
    // Nothing invites to scan while nothing can answer.
    stage.rest(isLost ? fault(texts.notChecked) : undefined)
  },
})
restore()
listenForScans((text) => void scan(text, false))
returnToOwnLanguage(() => stage.isAtRest && slot<HTMLInputElement>('code').value === '')
keepAwake()
offerFullScreen()
slot('typed').addEventListener('submit', (event) => {
  event.preventDefault()
  const field = slot<HTMLInputElement>('code')
  const typed = field.value
  field.value = ''
  // Hides the on-screen keyboard, which would cover the result.
  field.blur()
  void scan(typed, true).then((isAnswered) => {
    if (!isAnswered && field.value === '') field.value = typed
  })
})
