import { clockTime } from '../model/clock-time.ts'
import type { ResultView } from '../model/result-view.ts'
import type { Texts } from '../texts/texts.ts'
import { after, now } from './platform.ts'
import { showPicture } from './picture.ts'
import { slot, write, writeOrHide } from './elements.ts'
import { fitTexts } from './fit.ts'

/** The middle of the station page: a prompt or a result. */
export interface Stage {
  busy(): void
  /** Shows a result. `again`: action of the button; absent if this page cannot send the scan again. */
  show(view: ResultView, note: string, again?: () => void): void
  idle(): void
}

/** Opens the stage of this page. */
export function openStage(texts: Texts): Stage {
  const stage = slot('stage')
  const button = slot<HTMLButtonElement>('again')
  const fit = fitTexts(stage)
  let press: () => void = () => undefined
  let wasPressed = false
  let cancel: () => void = () => undefined

  function idle(): void {
    cancel()
    stage.dataset['view'] = 'idle'
    fit()
    // Drops the scanned text together with its result.
    press = () => undefined
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
    busy() {
      cancel()
      // Empties the text, because screen readers do not read the same text twice in a row.
      write('aloud', '')
      stage.dataset['view'] = 'busy'
    },
    show(view, note, again) {
      cancel()
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
      // While the button was hidden, it lost the focus. Restores the focus, so that the user can press the button
      // again.
      if (wasPressed && !button.hidden) button.focus()
      wasPressed = false
      write('aloud', sentences([view.headline, view.product, view.left, view.next, view.message, view.advice, note]))
      write('last', `${texts.last(clockTime(now(), texts.language))}: ${view.headline}`)
      cancel = after(view.seconds * 1_000, idle)
    },
  }
}

function sentences(parts: readonly string[]): string {
  const texts = parts.filter((part) => part !== '')
  return texts.map((part) => (/[.!?]$/.test(part) ? part : `${part}.`)).join(' ')
}
