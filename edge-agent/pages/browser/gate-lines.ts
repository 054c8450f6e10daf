import type { AlarmStep } from '../../../policy/vocabulary.ts'
import { clockTime } from '../model/status-view.ts'
import { arrangeLines, handledText, handleText, type GateLine } from '../model/gate-view.ts'
import type { PageAlarmState } from '../model/wire.ts'
import type { Texts } from '../texts/texts.ts'
import { newElement, slot, write } from './elements.ts'
import { request } from './platform.ts'

const ANSWER_MS = 5_000

/** Text of an alarm's line. */
export interface ChosenAlarm {
  alarmId: string
  time: string
  item: string
  /** Why the gate alarmed. */
  text: string
  /** What a person did about it. '' if it is open. */
  handled: string
  step: AlarmStep | 'none'
}

/** The list of open alarms and of the last decisions at a gate. */
export interface GateLines {
  add(line: GateLine): void
  /** The alarm with what people did about it until now. */
  latest(alarm: ChosenAlarm): ChosenAlarm
  setState(alarmId: string, state: PageAlarmState): void
  /** Reads the list from the agent again. False if the agent did not answer. */
  reload(): Promise<boolean>
}

/** Leads to the open alarms for which the list has no room, with a button below it. */
function openPager(lines: HTMLElement, texts: Texts) {
  let open: readonly HTMLElement[] = []

  /** Distance of a line from the top of the list, px. */
  const topOf = (line: HTMLElement) => line.getBoundingClientRect().top - lines.getBoundingClientRect().top

  /** The line at the top counts as seen, even if it is longer than the list. */
  const below = () => open.filter((line) => topOf(line) > 0 && topOf(line) + line.offsetHeight > lines.clientHeight + 1)

  function offerMore(): void {
    const { length } = below()
    const { moreOpen, toNewest } = texts.gate
    write('more-open', length > 0 ? moreOpen(length, lines.dataset['cut'] !== undefined) : toNewest)
    slot('more-open').hidden = length === 0 && lines.scrollTop === 0
  }

  slot('more-open').addEventListener('click', () => {
    const [next] = below()
    lines.scrollTop = next ? lines.scrollTop + topOf(next) : 0
    offerMore()
  })
  lines.addEventListener('scroll', offerMore)
  new ResizeObserver(offerMore).observe(lines)

  return {
    offerMore,
    /** Replaces all lines. `openLines`: those of open alarms, newest first. */
    replace(next: readonly HTMLElement[], openLines: readonly HTMLElement[]): void {
      open = openLines
      // A person who reads older alarms keeps the same line below the finger.
      const read = lines.scrollTop > 0 ? next.find((line) => topOf(line) >= 0) : undefined
      const before = read && topOf(read)
      lines.replaceChildren(...next)
      if (read && before !== undefined) lines.scrollTop += topOf(read) - before
    },
  }
}

/** Opens the list. `onHandle` is called when a person wants to handle an alarm. */
export function openGateLines(texts: Texts, onHandle: (alarm: ChosenAlarm) => void): GateLines {
  const lines = slot('lines')
  const pager = openPager(lines, texts)
  lines.addEventListener('click', (event) => {
    const line = event.target instanceof HTMLButtonElement ? event.target.closest('li') : null
    const alarmId = line?.dataset['alarm']
    if (!line || alarmId === undefined) return
    onHandle(chosenOf(line, alarmId))
  })

  const lineOf = (alarmId: string) =>
    [...lines.querySelectorAll<HTMLElement>('[data-alarm]')].find((line) => line.dataset['alarm'] === alarmId)

  const stepOf = (line: HTMLElement) => line.dataset['step'] as AlarmStep | undefined

  function arrange(): void {
    const newestFirst = [...lines.querySelectorAll<HTMLElement>('li')].toSorted(
      (a, b) => Number(b.dataset['at']) - Number(a.dataset['at']),
    )
    const { shown, hidden, openCount, isCut } = arrangeLines(newestFirst, (line) => {
      const { tag = '', alarm } = line.dataset
      return { tag, alarmId: alarm, step: stepOf(line) }
    })
    for (const line of shown) line.hidden = false
    for (const line of hidden) line.hidden = true
    pager.replace([...shown, ...hidden], shown.slice(0, openCount))
    // Of alarms that left the list, this page does not learn when they are handled.
    if (isCut) {
      lines.dataset['cut'] = 'true'
      write('list-begin', texts.gate.listCut)
    }
    pager.offerMore()
  }

  arrange()

  function add(added: GateLine): void {
    const isThere = ({ dataset: { alarm, at, tag } }: HTMLElement) =>
      added.alarmId === undefined ? at === `${added.atMs}` && tag === added.tag : alarm === added.alarmId
    if ([...lines.querySelectorAll<HTMLElement>('li')].some(isThere)) return
    lines.prepend(lineElement(added, texts))
    arrange()
    slot('no-lines').hidden = true
  }

  function setState(alarmId: string, state: Parameters<GateLines['setState']>[1]): void {
    const line = lineOf(alarmId)
    if (line && writeState(line, state, texts)) arrange()
  }

  const { make, repeat } = changesDuring()
  return {
    async reload() {
      const answered = await repeat(fetchLines)
      const { result: list, again } = answered
      if (!list) return false
      if (list.dataset['cut'] !== undefined) lines.dataset['cut'] = 'true'
      lines.replaceChildren(...list.children)
      slot('no-lines').hidden = lines.children.length > 0
      arrange()
      again()
      return true
    },
    latest(alarm) {
      const line = lineOf(alarm.alarmId)
      return line ? chosenOf(line, alarm.alarmId) : alarm
    },
    add: (added) => make(() => add(added)),
    setState: (alarmId, state) => make(() => setState(alarmId, state)),
  }
}

/** Changes of the list, and how those are made again that came while a list was requested, because it may lack them. */
function changesDuring() {
  const requests = new Set<(() => void)[]>()
  return {
    make(change: () => void): void {
      for (const request of requests) request.push(change)
      change()
    },
    async repeat<T>(request: () => Promise<T>): Promise<{ result: T; again(): void }> {
      const changes: (() => void)[] = []
      requests.add(changes)
      try {
        return { result: await request(), again: () => changes.forEach((change) => change()) }
      } finally {
        requests.delete(changes)
      }
    },
  }
}

/** Writes what was done about the alarm of a line. False if the line has no place for it. */
function writeState(line: HTMLElement, state: Parameters<GateLines['setState']>[1], texts: Texts): boolean {
  const place = line.querySelector('.handled')
  if (!place) return false
  line.dataset['step'] = state.step
  place.textContent = handledText(state, texts)
  const button = line.querySelector('button')
  if (button) button.textContent = handleText(state.step, texts)
  return true
}

/** Reads the list of this page from the agent. Undefined without an answer. */
async function fetchLines(): Promise<HTMLElement | undefined> {
  const answer = await request(location.href, {}, ANSWER_MS).catch(() => undefined)
  if (answer?.ok !== true) return undefined
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html')
  return page.querySelector<HTMLElement>('[data-slot="lines"]') ?? undefined
}

/** Makes the line of a new decision, as `Line` of the page (gate-page.tsx). */
function lineElement({ atMs, tone, text, isTextNeeded, item, tag, alarmId }: GateLine, texts: Texts): HTMLElement {
  const line = document.createElement('li')
  line.dataset['tone'] = tone
  line.dataset['at'] = `${atMs}`
  line.dataset['tag'] = tag
  if (isTextNeeded) line.dataset['needed'] = 'true'
  const parts = [
    newElement('time', clockTime(atMs, texts.language)),
    newElement('span', text),
    newElement('code', item),
  ]
  if (alarmId !== undefined) {
    line.dataset['alarm'] = alarmId
    const button = document.createElement('button')
    button.type = 'button'
    button.textContent = handleText(undefined, texts)
    parts.push(newElement('span', '', { className: 'handled' }), button)
  }
  line.append(...parts.flatMap((part) => [part, ' ']))
  return line
}

function chosenOf(line: HTMLElement, alarmId: string): ChosenAlarm {
  const textOf = (selector: string) => line.querySelector(selector)?.textContent ?? ''
  const step = (line.dataset['step'] ?? 'none') as ChosenAlarm['step']
  return {
    alarmId,
    time: textOf('time'),
    item: textOf('code'),
    text: textOf('span'),
    handled: textOf('.handled'),
    step,
  }
}
