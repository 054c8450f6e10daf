import { clockTime } from '../model/clock-time.ts'
import { GATE_LINES, gateLine, gateLost, gateReady, gateView, type GateLine, type GateView } from '../model/gate-view.ts'
import type { PageLink } from '../model/status-view.ts'
import type { LiveEvent } from '../model/wire.ts'
import { keepAwake } from './awake.ts'
import { openHeader } from './header.ts'
import { keepUpToDate, listen } from './live.ts'
import { placeOfPage } from './place.ts'
import { after } from './platform.ts'
import { made, slot, write } from './slots.ts'

/** The program of the display at the gate: it only tells. */
const place = placeOfPage()
const { deviceId, texts } = place
const header = openHeader(place)
let link: PageLink = 'open'
let callOff: () => void = () => undefined

function show(view: GateView): void {
  callOff()
  slot('stage').dataset['tone'] = view.tone
  write('headline', view.headline)
  write('message', view.message)
  write('item', view.item)
  slot('item-line').hidden = view.item === ''
  if (view.seconds === 0) return
  write('aloud', `${view.headline}. ${view.message}`)
  callOff = after(view.seconds * 1_000, rest)
}

function rest(): void {
  show(link === 'open' ? gateReady(texts) : gateLost(texts))
}

function addLine({ atMs, tone, text, item }: GateLine): void {
  const line = document.createElement('li')
  line.dataset['tone'] = tone
  line.append(made('time', clockTime(atMs, texts.language)), ' ', made('span', text), ' ', made('code', item))
  const lines = slot('lines')
  lines.prepend(line)
  while (lines.childElementCount > GATE_LINES) lines.lastElementChild?.remove()
  slot('no-lines').hidden = true
}

function onEvent(event: LiveEvent): void {
  if (event.type === 'status') return header.setStatus(event.status)
  if (event.type !== 'result' || event.deviceId !== deviceId) return
  const view = gateView(event, texts)
  if (view) show(view)
  const line = gateLine(event, texts)
  if (line) addLine(line)
}

listen({
  onEvent,
  onLink(next) {
    header.setLink(next)
    if (next === link) return
    link = next
    rest()
    if (next === 'open') void keepUpToDate()
  },
})
keepAwake()
