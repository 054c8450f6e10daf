import { againText, type ResultView } from '../model/result-view.ts'
import { clockTime } from '../model/status-view.ts'
import type { Texts } from '../texts/texts.ts'
import { showPicture, slot, write, writeOrHide } from './elements.ts'
import { after, now } from './platform.ts'
import { fitTexts } from './screen.ts'

/** The middle of the station page: a prompt or a result. */
export interface Stage {
  busy(): void
  /**
   * Shows a result. `again`: action of the button; absent if this page cannot send the scan again. `ageMs`: time since
   * the result.
   */
  show(view: ResultView, note: string, again?: () => void, ageMs?: number): void
  idle(): void
  /** What the stage shows instead of the invitation to scan; undefined: the invitation. */
  rest(view: ResultView | undefined): void
  /** What takes the screen at once, instead of every result; undefined: nothing. */
  take(view: ResultView | undefined): void
  readonly isAtRest: boolean
}

/** Opens the stage of this page. */
export function openStage(texts: Texts, onDone: () => void): Stage {
  const stage = slot('stage')
  const button = slot<HTMLButtonElement>('again')
  const fit = openFit(stage)
  let press: () => void = () => undefined
  let wasPressed = false
  let cancel: () => void = () => undefined
  let resting: ResultView | undefined
  let taken: ResultView | undefined
  let isAtRest = true

  function idle(): void {
    cancel()
    isAtRest = true
    // Drops the scanned text together with its result.
    press = () => undefined
    const instead = taken ?? resting
    // Nothing is to be done with it.
    slot('done').hidden = instead !== undefined
    if (instead) return draw(instead, '')
    // A text of a result that is gone must not be read again.
    write('aloud', '')
    stage.dataset['view'] = 'idle'
    fit()
  }

  function draw(view: ResultView, note: string, again?: () => void): void {
    press = again ?? (() => undefined)
    writeResult(view, note, again !== undefined, texts)
    fit([view.next, ...view.shorterNext])
  }

  button.addEventListener('click', () => {
    wasPressed = true
    press()
  })
  function finish(): void {
    onDone()
    idle()
  }
  slot('done').addEventListener('click', finish)
  onEscape(stage, finish)

  return {
    idle,
    get isAtRest() {
      return isAtRest
    },
    take(view) {
      if (view === undefined && taken === undefined) return
      taken = view
      idle()
    },
    rest(view) {
      resting = view
      if (isAtRest) idle()
    },
    busy() {
      if (taken) return
      cancel()
      isAtRest = false
      // Empties the text, because screen readers do not read the same text twice in a row.
      write('aloud', '')
      stage.dataset['view'] = 'busy'
    },
    show(view, note, again, ageMs = 0) {
      write('last', `${texts.last(clockTime(now() - ageMs, texts.language))}: ${view.headline}`)
      if (taken) return
      cancel()
      isAtRest = false
      slot('done').hidden = false
      draw(view, note, again)
      // While the button was hidden, it lost the focus. Restores the focus, so that the user can press the button
      // again.
      if (wasPressed && !button.hidden) button.focus()
      wasPressed = false
      cancel = after(view.seconds * 1_000 - ageMs, finish)
    },
  }
}

/** Fits the texts of the stage. `next`: the goods that come next, with fewer names each time. */
function openFit(stage: HTMLElement): (next?: readonly string[]) => void {
  let texts: readonly string[] = ['']
  const fit = fitTexts(stage, (step) => {
    const text = texts[step]
    if (text !== undefined) writeOrHide('next', text)
    return text !== undefined
  })
  return (next = texts) => {
    texts = next
    fit()
  }
}

/** Leaves a result on Escape, unless the key belongs to a dialog. */
function onEscape(stage: HTMLElement, finish: () => void): void {
  document.addEventListener('keydown', (event) => {
    const isResult = stage.dataset['view'] === 'result' && !document.querySelector('dialog[open]')
    if (event.key === 'Escape' && isResult) finish()
  })
}

/** Fills the slots of the stage with a result. `canRepeat`: the page has the text of the scan. */
function writeResult(view: ResultView, note: string, canRepeat: boolean, texts: Texts): void {
  const button = slot<HTMLButtonElement>('again')
  write('headline', view.headline)
  writeOrHide('product', view.product)
  showPicture(view.product, view.picture)
  writeOrHide('left', view.left)
  writeOrHide('next', view.next)
  writeOrHide('message', view.message)
  writeOrHide('advice', [view.advice, note].filter((part) => part !== '').join(' '))
  button.hidden = !view.again || !canRepeat
  button.textContent = againText(view.again, texts)
  slot('stage').dataset['tone'] = view.tone
  slot('stage').dataset['view'] = 'result'
  write('aloud', sentences([view.headline, view.product, view.left, view.next, view.message, view.advice, note]))
}

function sentences(parts: readonly string[]): string {
  const texts = parts.filter((part) => part !== '')
  return texts.map((part) => (/[.!?]$/.test(part) ? part : `${part}.`)).join(' ')
}
