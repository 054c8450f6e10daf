import {
  goodsText,
  gateLine,
  gateLost,
  gateRest,
  gateView,
  isWayOut,
  replaces,
  type GateTone,
  type GateView,
  GATE_LINES,
  handledText,
  type GateLine,
} from '../model/gate-view.ts'
import type { LiveEvent, PageStatus, PageAlarmState } from '../model/wire.ts'
import { fitTexts, keepAwake, offerFullScreen } from './screen.ts'
import { openSound } from './sound.ts'
import { openHeader } from './header.ts'
import { reloadIfOutdated, listen } from './live.ts'
import { openOperator, type Operator } from './operator.ts'
import { readPageContext, type PageContext, showPicture, slot, write, newElement } from './elements.ts'
import { after, now } from './platform.ts'
import { SignIn } from './sign-in.ts'
import type { AlarmStep } from '../../../policy/vocabulary.ts'
import { handleAlarm } from './api.ts'
import { clockTime } from '../model/status-view.ts'
import type { Texts } from '../texts/texts.ts'

/** Text of an alarm's line. */
interface ChosenAlarm {
  alarmId: string
  time: string
  item: string
}

/** The list of the last decisions at a gate. */
interface GateLines {
  add(line: GateLine): void
  setState(alarmId: string, state: PageAlarmState): void
}

/** Opens the list. `onHandle` is called when a person wants to handle an alarm. */
function openGateLines(texts: Texts, onHandle: (alarm: ChosenAlarm) => void): GateLines {
  const lines = slot('lines')
  lines.addEventListener('click', (event) => {
    const line = event.target instanceof HTMLButtonElement ? event.target.closest('li') : null
    const alarmId = line?.dataset['alarm']
    if (!line || alarmId === undefined) return
    const textOf = (tag: string) => line.querySelector(tag)?.textContent ?? ''
    onHandle({ alarmId, time: textOf('time'), item: textOf('code') })
  })

  return {
    add({ atMs, tone, text, item, alarmId }) {
      const line = document.createElement('li')
      line.dataset['tone'] = tone
      const parts = [
        newElement('time', clockTime(atMs, texts.language)),
        newElement('span', text),
        newElement('code', item),
      ]
      if (alarmId !== undefined) {
        line.dataset['alarm'] = alarmId
        const button = document.createElement('button')
        button.type = 'button'
        button.textContent = texts.gate.handle
        parts.push(newElement('span', '', { className: 'handled' }), button)
      }
      line.append(...parts.flatMap((part) => [part, ' ']))
      lines.prepend(line)
      while (lines.childElementCount > GATE_LINES) lines.lastElementChild?.remove()
      slot('no-lines').hidden = true
    },
    setState(alarmId, state) {
      for (const line of lines.querySelectorAll<HTMLElement>('[data-alarm]')) {
        const place = line.dataset['alarm'] === alarmId && line.querySelector('.handled')
        if (place) place.textContent = handledText(state, texts)
      }
    },
  }
}

interface AlarmDialogParts {
  context: PageContext
  operator: Operator
  signIn: SignIn
  onHandled(alarmId: string, state: PageAlarmState): void
}

/** Prepares the dialog for alarms. The result opens it for an alarm, after a sign-in if no operator is signed in. */
function openAlarmDialog({ context, operator, signIn, onHandled }: AlarmDialogParts): (a: ChosenAlarm) => void {
  const { deviceId, texts } = context
  const dialog = slot<HTMLDialogElement>('alarm-dialog')
  let chosen: ChosenAlarm | undefined

  async function send(step: AlarmStep): Promise<void> {
    const alarm = chosen
    if (!alarm) return
    const answer = await handleAlarm(deviceId, alarm.alarmId, step)
    if (answer.ok) {
      onHandled(alarm.alarmId, answer.body)
      return dialog.close()
    }
    if (answer.code === 'operator_required') {
      operator.setName(null)
      dialog.close()
      return signIn.open(() => show(alarm))
    }
    write('alarm-error', answer.status === 404 ? texts.gate.tooLate : texts.requestFailed[answer.fault].what)
  }

  function show(alarm: ChosenAlarm): void {
    chosen = alarm
    write('alarm-title', texts.gate.handleTitle(alarm.time))
    write('alarm-item', alarm.item)
    write('alarm-error', '')
    dialog.showModal()
  }

  for (const button of dialog.querySelectorAll<HTMLElement>('[data-step]'))
    button.addEventListener('click', () => void send(button.dataset['step'] as AlarmStep))
  slot('alarm-close').addEventListener('click', () => dialog.close())

  return (alarm) => (operator.isSignedIn ? show(alarm) : signIn.open(() => show(alarm)))
}

/** Script of the display at the gate. Staff handle alarms in the list of the last decisions. */
const context = readPageContext()
const { deviceId, texts } = context
const header = openHeader(context)
const operator = openOperator(context, slot('operator-name').dataset['name'] ?? null)
const signIn = new SignIn(context, operator)
const play = openSound(context)
const fit = fitTexts(slot('stage'))
const lines = openGateLines(texts, (alarm) => handle(alarm))
const handle = openAlarmDialog({ context, operator, signIn, onHandled: lines.setState })
let isLost = false
/** The last status. */
let status: Pick<PageStatus, 'devices' | 'emergency'> = { devices: [], emergency: null }
/** True while the display shows no result. */
let isResting = true
let shown: { tone: GateTone; atMs: number } = { tone: 'ready', atMs: 0 }
let cancel: () => void = () => undefined

/** Goods of the alarms that the display shows now. */
let goods: string[] = []
/** Maximum alarms that the display counts together. */
const COUNTED_LIMIT = 50

function show(view: GateView): void {
  cancel()
  isResting = false
  goods = view.tone === 'alarm' ? [...(shown.tone === 'alarm' ? goods : []), view.item].slice(-COUNTED_LIMIT) : []
  shown = { tone: view.tone, atMs: now() }
  slot('stage').dataset['tone'] = view.tone
  write('headline', view.headline)
  write('message', view.message)
  write('item', goodsText(goods))
  // Several different goods have no picture in common.
  showPicture(goodsText(goods), new Set(goods).size === 1 ? view.picture : '')
  slot('item-line').hidden = goodsText(goods) === ''
  fit()
  write('aloud', view.seconds === 0 ? '' : `${view.headline}. ${view.message}`)
  if (view.seconds > 0) cancel = after(view.seconds * 1_000, rest)
}

function rest(): void {
  // The way out stays on the display until the agent says that the emergency is over.
  show(isLost && !isWayOut(status, deviceId) ? gateLost(texts) : gateRest(status, deviceId, texts))
  isResting = true
}

function onEvent(event: LiveEvent): void {
  if (event.type === 'status') return setStatus(event.status)
  if (event.deviceId !== deviceId || event.type === 'person') return
  if (event.type === 'alarm') return lines.setState(event.alarmId, event)
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
}

/** Shows an operator who signed in with a badge or on another page, or who signed out. */
function setOperator(name: string | null): void {
  operator.setName(name)
  if (!signIn.isWaiting) signIn.close()
}

listen({
  onEvent,
  onLink(next) {
    header.setLost(next)
    if (next === isLost) return
    isLost = next
    rest()
    if (!isLost) void reloadIfOutdated().then(operator.refresh)
  },
})
keepAwake()
offerFullScreen()
