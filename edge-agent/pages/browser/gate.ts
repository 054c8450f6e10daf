import {
  centsIn,
  goodsTexts,
  gateLine,
  gateLost,
  gateRest,
  gateView,
  isWayOut,
  replaces,
  type GateTone,
  type GateView,
} from '../model/gate-view.ts'
import type { LiveEvent, PageStatus } from '../model/wire.ts'
import { fitTexts, keepAwake, offerFullScreen } from './screen.ts'
import { openSound } from './sound.ts'
import { openGateLines, type ChosenAlarm, type GateLines } from './gate-lines.ts'
import { openHeader } from './header.ts'
import { returnToOwnLanguage } from './language.ts'
import { minuteTime } from '../model/status-view.ts'
import { reloadIfOutdated, listen } from './live.ts'
import { openOperator, type Operator } from './operator.ts'
import { readPageContext, readRecent, type PageContext, showPicture, slot, write } from './elements.ts'
import { after, now } from './platform.ts'
import { SignIn } from './sign-in.ts'
import type { AlarmStep } from '../../../policy/vocabulary.ts'
import { handleAlarm } from './api.ts'

interface AlarmDialogParts {
  context: PageContext
  operator: Operator
  signIn: SignIn
  lines: Pick<GateLines, 'latest' | 'setState'>
}

interface AlarmDialog {
  /** Opens the dialog for an alarm, after a sign-in if no operator is signed in. */
  open(alarm: ChosenAlarm): void
  /** Says in the open dialog what a colleague did about its alarm meanwhile, and keeps what was typed. */
  changed(alarmId: string): void
  /** After a lost connection, says in the open dialog whether the agent has what was sent last. */
  agentIsBack(): void
}

/** Prepares the dialog for alarms. */
function openAlarmDialog({ context, operator, signIn, lines }: AlarmDialogParts): AlarmDialog {
  const { deviceId, texts } = context
  const dialog = slot<HTMLDialogElement>('alarm-dialog')
  let chosen: ChosenAlarm | undefined
  /** What was sent without an answer. */
  let unanswered: AlarmStep | undefined

  async function send(step: AlarmStep): Promise<void> {
    const alarm = chosen
    if (!alarm) return
    const recoveredCent = step === 'real' ? centsIn(slot<HTMLInputElement>('recovered').value) : undefined
    if (recoveredCent === null) return write('alarm-error', texts.gate.noAmount)
    const answer = await handleAlarm(deviceId, alarm.alarmId, { step, seen: alarm.step, recoveredCent })
    if (answer.ok) {
      lines.setState(alarm.alarmId, answer.body)
      return dialog.close()
    }
    if (answer.code === 'operator_required') {
      operator.setName(null)
      dialog.close()
      return signIn.open(() => show(alarm))
    }
    // The dialog shows what a colleague recorded, before the operator may replace it.
    if (answer.code === 'alarm_disposed') return describe(lines.latest(alarm))
    unanswered = answer.fault === 'unreachable' ? step : undefined
    write('alarm-error', answer.status === 404 ? texts.gate.tooLate : texts.requestFailed[answer.fault].what)
  }

  function describeState({ handled, step }: ChosenAlarm): void {
    const isDisposed = step !== 'none' && step !== 'acknowledged'
    write('alarm-known', isDisposed ? texts.gate.recorded(handled) : handled)
    slot('alarm-known').hidden = handled === ''
    slot('alarm-acknowledge').hidden = isDisposed
  }

  function describe(alarm: ChosenAlarm): void {
    const { time, item, text } = alarm
    chosen = alarm
    write('alarm-title', texts.gate.handleTitle(time))
    write('alarm-item', item)
    write('alarm-why', text)
    describeState(alarm)
    unanswered = undefined
    write('alarm-error', '')
    slot<HTMLInputElement>('recovered').value = ''
  }

  function show(alarm: ChosenAlarm): void {
    // A colleague may have recorded a cause during the sign-in.
    describe(lines.latest(alarm))
    dialog.showModal()
  }

  for (const button of dialog.querySelectorAll<HTMLElement>('[data-step]'))
    button.addEventListener('click', () => void send(button.dataset['step'] as AlarmStep))
  slot('alarm-close').addEventListener('click', () => dialog.close())

  return {
    open: (alarm) => (operator.isSignedIn ? show(alarm) : signIn.open(() => show(alarm))),
    // `chosen` keeps what the operator chose: a button that was pressed at this moment still replaces nothing unseen.
    changed: (alarmId) => {
      if (dialog.open && chosen?.alarmId === alarmId) describeState(lines.latest(chosen))
    },
    agentIsBack() {
      if (!dialog.open || !chosen || unanswered === undefined) return
      const latest = lines.latest(chosen)
      describeState(latest)
      write('alarm-error', latest.step === unanswered ? '' : texts.gate.notStored)
      unanswered = undefined
    },
  }
}

/** Script of the display at the gate. Staff handle alarms in the list of the last decisions. */
const context = readPageContext()
const { deviceId, texts } = context
const header = openHeader(context)
const operator = openOperator(context, slot('operator-name').dataset['name'] ?? null, header.setStaff)
const signIn = new SignIn(context, operator)
const play = openSound(context)
const fit = fitTexts(slot('stage'), writeGoods)
const lines = openGateLines(texts, (alarm) => alarmDialog.open(alarm))
const alarmDialog = openAlarmDialog({ context, operator, signIn, lines })
let isLost = false
/** True once the stream of events was open. */
let wasLive = false
/** The last status. */
let status: Pick<PageStatus, 'devices' | 'emergency'> = { devices: [], emergency: null }
/** True while the display shows no result. */
let isResting = true
let shown: { tone: GateTone; atMs: number } = { tone: 'ready', atMs: 0 }
let cancel: () => void = () => undefined

/** Goods of the alarms that the display shows now. */
let goods: string[] = []
/** Their names, with fewer names each time. */
let goodsNames: string[] = []
/** Maximum alarms that the display counts together. */
const COUNTED_LIMIT = 50

/** Names fewer goods with each step. False if there are no fewer names. */
function writeGoods(step: number): boolean {
  const text = goodsNames[step] ?? (step === 0 ? '' : undefined)
  if (text !== undefined) write('item', text)
  return text !== undefined
}

/** `ageMs`: time since the result. */
function show(view: GateView, ageMs = 0): void {
  cancel()
  isResting = false
  goods = view.tone === 'alarm' ? [...(shown.tone === 'alarm' ? goods : []), view.item].slice(-COUNTED_LIMIT) : []
  shown = { tone: view.tone, atMs: now() - ageMs }
  slot('stage').dataset['tone'] = view.tone
  write('headline', view.headline)
  write('message', view.message)
  goodsNames = goodsTexts(goods, texts)
  const [all = ''] = goodsNames
  // Several different goods have no picture in common.
  showPicture(all, new Set(goods).size === 1 ? view.picture : '')
  slot('item-line').hidden = all === ''
  fit()
  write('aloud', view.seconds === 0 ? '' : `${view.headline}. ${view.message}`)
  if (view.seconds > 0) cancel = after(view.seconds * 1_000 - ageMs, rest)
}

function rest(): void {
  // The way out stays on the display until the agent says that the emergency is over.
  show(isLost && !isWayOut(status, deviceId) ? gateLost(texts) : gateRest(status, deviceId, texts))
  isResting = true
}

/** Shows what was on this gate before the page was loaded again, for the rest of its time. */
function restore(): void {
  for (const { ageMs, result, light } of readRecent()) {
    const view = gateView({ result, ...(light !== undefined && { light }) }, texts)
    if (!view || ageMs >= view.seconds * 1_000) continue
    if (replaces(view.tone, shown.tone, now() - ageMs - shown.atMs)) show(view, ageMs)
  }
}

function onEvent(event: LiveEvent): void {
  if (event.type === 'status') return setStatus(event.status)
  if (event.deviceId !== deviceId || event.type === 'person') return
  if (event.type === 'alarm') {
    lines.setState(event.alarmId, event)
    return alarmDialog.changed(event.alarmId)
  }
  if (event.type === 'operator') return setOperator(event.name)
  const view = gateView(event, texts)
  if (view && !isWayOut(status, deviceId) && replaces(view.tone, shown.tone, now() - shown.atMs)) {
    show(view)
    play(view.tone)
  }
  const line = gateLine(event, texts)
  if (line) lines.add(line)
}

function setStatus(next: PageStatus): void {
  status = next
  header.setStatus(next)
  if (isResting || isWayOut(next, deviceId)) rest()
  // Nothing covers the way out: an open dialog would lie above it.
  if (isWayOut(next, deviceId))
    for (const open of document.querySelectorAll<HTMLDialogElement>('dialog[open]')) open.close()
}

/** Reads the list again: events that happened while the agent did not answer are in no stream. */
async function refresh(): Promise<void> {
  if (await lines.reload()) alarmDialog.agentIsBack()
}

/** Shows an operator who signed in with a badge or on another page, or who signed out. */
function setOperator(name: string | null): void {
  operator.setName(name)
  if (!signIn.isWaiting) signIn.close()
}

listen({
  onEvent,
  onLink(next, heardMs) {
    header.setLost(next, heardMs)
    // What happened since the agent rendered the page is neither in the page nor in the stream.
    if (!next && !wasLive) void refresh()
    wasLive ||= !next
    if (next === isLost) return
    isLost = next
    rest()
    const asOf = isLost ? ` · ${texts.asOf(minuteTime(heardMs, texts.language))}` : ''
    write('list-title', `${texts.gate.lastDecisions}${asOf}`)
    if (!isLost) void reloadIfOutdated().then(operator.refresh).then(refresh)
  },
})
restore()
keepAwake()
returnToOwnLanguage(() => isResting)
offerFullScreen()
