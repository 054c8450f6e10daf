import { LONGEST_SCAN, SILENCE_MS, typedBurst } from '../model/typed-burst.ts'
import { resultView, type ResultView } from '../model/result-view.ts'
import type { LiveEvent, PageResult, PageStatus } from '../model/wire.ts'
import type { Advice, Texts } from '../texts/texts.ts'
import { sendScan } from './api.ts'
import { fitTexts, keepAwake, offerFullScreen } from './screen.ts'
import { openSound } from './sound.ts'
import { openHeader } from './header.ts'
import { reloadIfOutdated, listen } from './live.ts'
import { openOperator } from './operator.ts'
import { readPageContext, slot, write, writeOrHide, showPicture } from './elements.ts'
import { after, now } from './platform.ts'
import { SignIn } from './sign-in.ts'
import { clockTime } from '../model/status-view.ts'

/** The middle of the station page: a prompt or a result. */
interface Stage {
  busy(): void
  /** Shows a result. `again`: action of the button; absent if this page cannot send the scan again. */
  show(view: ResultView, note: string, again?: () => void): void
  idle(): void
  /** What the stage shows instead of the invitation to scan; undefined: the invitation. */
  rest(view: ResultView | undefined): void
}

/** Opens the stage of this page. */
function openStage(texts: Texts): Stage {
  const stage = slot('stage')
  const button = slot<HTMLButtonElement>('again')
  const fit = fitTexts(stage)
  let press: () => void = () => undefined
  let wasPressed = false
  let cancel: () => void = () => undefined
  let resting: ResultView | undefined
  let isAtRest = true

  function idle(): void {
    cancel()
    isAtRest = true
    // Drops the scanned text together with its result.
    press = () => undefined
    if (resting) return draw(resting, '')
    // A text of a result that is gone must not be read again.
    write('aloud', '')
    stage.dataset['view'] = 'idle'
    fit()
  }

  function draw(view: ResultView, note: string, again?: () => void): void {
    const labels = { next: texts.nextLabel, retry: texts.tryAgain, approve: texts.approve }
    write('headline', view.headline)
    writeOrHide('product', view.product)
    showPicture(view.product, view.picture)
    writeOrHide('left', view.left)
    writeOrHide('next', view.next)
    writeOrHide('message', view.message)
    writeOrHide('advice', [view.advice, note].filter((part) => part !== '').join(' '))
    press = again ?? (() => undefined)
    button.hidden = !view.again || !again
    button.textContent = view.again ? labels[view.again] : ''
    stage.dataset['tone'] = view.tone
    stage.dataset['view'] = 'result'
    fit()
    write('aloud', sentences([view.headline, view.product, view.left, view.next, view.message, view.advice, note]))
  }

  button.addEventListener('click', () => {
    wasPressed = true
    press()
  })
  slot('done').addEventListener('click', idle)
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && stage.dataset['view'] === 'result' && !document.querySelector('dialog[open]')) idle()
  })

  return {
    idle,
    rest(view) {
      resting = view
      if (isAtRest) idle()
    },
    busy() {
      cancel()
      isAtRest = false
      // Empties the text, because screen readers do not read the same text twice in a row.
      write('aloud', '')
      stage.dataset['view'] = 'busy'
    },
    show(view, note, again) {
      cancel()
      isAtRest = false
      draw(view, note, again)
      // While the button was hidden, it lost the focus. Restores the focus, so that the user can press the button
      // again.
      if (wasPressed && !button.hidden) button.focus()
      wasPressed = false
      write('last', `${texts.last(clockTime(now(), texts.language))}: ${view.headline}`)
      cancel = after(view.seconds * 1_000, idle)
    },
  }
}

function sentences(parts: readonly string[]): string {
  const texts = parts.filter((part) => part !== '')
  return texts.map((part) => (/[.!?]$/.test(part) ? part : `${part}.`)).join(' ')
}

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
const stage = openStage(texts)
const play = openSound(context)
const operator = openOperator(context, slot('operator-name').dataset['name'] ?? null)
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
  else stage.show(fault(texts.requestFailed[answer.fault]), '')
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
  stage.show(view, noteFor(view, result, text), againFor(view, text))
}

function noteFor(view: ResultView, result: PageResult, text: string | undefined): string {
  // This page does not have the text that the device's own scanner read, so the operator must scan again.
  const badge = view.again === 'approve' && text === undefined ? texts.approveThenScan : ''
  const offline = result.kind === 'decision' && result.answer.offline ? texts.decidedOffline : ''
  return [badge, offline].filter((part) => part !== '').join(' ')
}

function againFor(view: ResultView, text: string | undefined): (() => void) | undefined {
  const retry = text === undefined ? undefined : () => void scan(text, true)
  if (view.again !== 'approve') return retry
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

/** Nothing invites to scan while nothing can answer, or while people must leave. */
function rest(): void {
  stage.rest(
    wasLost
      ? fault(texts.lost)
      : isEmergency
        ? { ...fault(texts.emergency.leave), headline: texts.emergency.title }
        : undefined,
  )
}

function setStatus(status: PageStatus): void {
  header.setStatus(status)
  if (isEmergency === (status.emergency !== null)) return
  isEmergency = status.emergency !== null
  rest()
}

const askAgent = listen({
  onEvent,
  onLink(isLost) {
    header.setLost(isLost)
    if (wasLost && !isLost) void reloadIfOutdated().then(operator.refresh)
    wasLost = isLost
    rest()
  },
})
listenForScans((text) => void scan(text, false))
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
