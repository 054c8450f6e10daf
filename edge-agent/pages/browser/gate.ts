import { clockTime } from '../model/clock-time.ts'
import { GATE_LINES, gateLine, gateLost, gateReady, gateView, replaces } from '../model/gate-view.ts'
import type { GateLine, GateTone, GateView } from '../model/gate-view.ts'
import type { LiveEvent } from '../model/wire.ts'
import { keepAwake } from './awake.ts'
import { openHeader } from './header.ts'
import { reloadIfOutdated, listen } from './live.ts'
import { readPageContext } from './page-context.ts'
import { after, now } from './platform.ts'
import { newElement, slot, write } from './elements.ts'

/** Script of the display at the gate. The display accepts no input. */
const context = readPageContext()
const { deviceId, texts } = context
const header = openHeader(context)
let isLost = false
let shown: { tone: GateTone; atMs: number } = { tone: 'ready', atMs: 0 }
let cancel: () => void = () => undefined

function show(view: GateView): void {
  cancel()
  shown = { tone: view.tone, atMs: now() }
  slot('stage').dataset['tone'] = view.tone
  write('headline', view.headline)
  write('message', view.message)
  write('item', view.item)
  slot('item-line').hidden = view.item === ''
  write('aloud', view.seconds === 0 ? '' : `${view.headline}. ${view.message}`)
  if (view.seconds > 0) cancel = after(view.seconds * 1_000, rest)
}

function rest(): void {
  show(isLost ? gateLost(texts) : gateReady(texts))
}

function addLine({ atMs, tone, text, item }: GateLine): void {
  const line = document.createElement('li')
  line.dataset['tone'] = tone
  line.append(
    newElement('time', clockTime(atMs, texts.language)),
    ' ',
    newElement('span', text),
    ' ',
    newElement('code', item),
  )
  const lines = slot('lines')
  lines.prepend(line)
  while (lines.childElementCount > GATE_LINES) lines.lastElementChild?.remove()
  slot('no-lines').hidden = true
}

function onEvent(event: LiveEvent): void {
  if (event.type === 'status') return header.setStatus(event.status)
  if (event.type !== 'result' || event.deviceId !== deviceId) return
  const view = gateView(event, texts)
  if (view && replaces(view.tone, shown.tone, now() - shown.atMs)) show(view)
  const line = gateLine(event, texts)
  if (line) addLine(line)
}

listen({
  onEvent,
  onLink(next) {
    header.setLost(next)
    if (next === isLost) return
    isLost = next
    rest()
    if (!isLost) void reloadIfOutdated()
  },
})
keepAwake()
