import { SILENCE_MS, typedBurst } from '../model/typed-burst.ts'
import { after } from './platform.ts'

/**
 * Receives the scans of a keyboard-wedge scanner, whichever element has the focus. Hides the key presses of the scanner
 * from buttons and fields.
 */
export function listenForScans(onScan: (text: string) => void): void {
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
