import { LONGEST_SCAN } from '../model/typed-burst.ts'
import { resultView, type ResultView } from '../model/result-view.ts'
import type { LiveEvent, PageResult } from '../model/wire.ts'
import type { Advice } from '../texts/texts.ts'
import { sendScan } from './api.ts'
import { keepAwake } from './awake.ts'
import { openHeader } from './header.ts'
import { listenForScans } from './keyboard-scanner.ts'
import { reloadIfOutdated, listen } from './live.ts'
import { openOperator } from './operator.ts'
import { readPageContext } from './page-context.ts'
import { now } from './platform.ts'
import { openSignIn } from './sign-in.ts'
import { slot } from './elements.ts'
import { openStage } from './stage.ts'

/**
 *   scanner · typed code · "next label" ──▶ POST /v1/scan ──▶ result on the stage
 *   the device's own scanner ──▶ agent ──▶ /v1/events ──▶ result on the stage
 *
 * The program of the station page.
 */
const context = readPageContext()
const { deviceId, texts } = context
const header = openHeader(context)
const stage = openStage(texts)
const operator = openOperator(context, slot('operator-name').dataset['name'] ?? null)
const signIn = openSignIn(context, operator)

const underWay = new Set<string>()
const meanwhile: PageResult[] = []
/** The agent sends each result to all pages, so this page gets its own results twice. */
let shown = { key: '', atMs: 0 }
const SAME_RESULT_MS = 3_000

/** `byHand`: a person typed it or pressed a button, which keeps the operator signed in. A shopper's scan does not. */
async function scan(raw: string, byHand: boolean): Promise<void> {
  const text = raw.trim()
  // The same code again before the answer means that the scanner fired twice.
  if (text === '' || underWay.has(text)) return
  if (text.length > LONGEST_SCAN) return stage.show(fault({ what: texts.tooLong, todo: '' }), '')
  underWay.add(text)
  signIn.close()
  stage.busy()
  const answer = await sendScan(deviceId, text, byHand)
  underWay.delete(text)
  if (answer.ok) show(answer.body, text)
  else stage.show(fault(texts.requestFailed[answer.fault]), '')
  for (const result of meanwhile.splice(0)) show(result)
}

function fault({ what, todo }: Advice): ResultView {
  return { tone: 'staff', headline: texts.callStaff, left: '', message: what, advice: todo, again: null, seconds: 20 }
}

/** `text`: what this page sent; absent for a scan of the device's own scanner. */
function show(result: PageResult, text?: string): void {
  const view = resultView(result, texts)
  if (result.kind === 'operator') operator.setName(result.name)
  // The footer shows the operator.
  if (!view) return stage.idle()
  const key = JSON.stringify(result)
  const isSame = key === shown.key && now() - shown.atMs < SAME_RESULT_MS
  if (isSame && text === undefined) return
  shown = { key, atMs: now() }
  stage.show(view, noteFor(view, result, text), againFor(view, text))
}

function noteFor(view: ResultView, result: PageResult, text: string | undefined): string {
  // This page does not have the text that the device's own scanner read. The operator scans it again.
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
  if (event.type === 'status') return header.setStatus(event.status)
  if (event.deviceId !== deviceId || event.type === 'person') return
  // The answer of the pending request shows the result.
  if (event.type === 'result') return underWay.size > 0 ? void meanwhile.push(event.result) : show(event.result)
  operator.setName(event.name)
  if (!signIn.isWaiting) signIn.close()
}

let wasLost = false
listen({
  onEvent,
  onLink(isLost) {
    header.setLost(isLost)
    if (wasLost && !isLost) void reloadIfOutdated().then(operator.refresh)
    wasLost = isLost
  },
})
listenForScans((text) => void scan(text, false))
keepAwake()
slot('sign-in').addEventListener('click', () => signIn.open())
slot('typed').addEventListener('submit', (event) => {
  event.preventDefault()
  const field = slot<HTMLInputElement>('code')
  const typed = field.value
  field.value = ''
  // On a touch screen the keyboard would cover the result.
  field.blur()
  void scan(typed, true)
})
