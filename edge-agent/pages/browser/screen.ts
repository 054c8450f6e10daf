import { slot } from './elements.ts'

/** Makes the button that shows the page on the full screen, if the browser can do that. */
export function offerFullScreen(): void {
  const button = slot('full-screen')
  const draw = () => (button.hidden = !document.fullscreenEnabled || document.fullscreenElement !== null)
  button.addEventListener('click', () => void document.documentElement.requestFullscreen().catch(() => undefined))
  document.addEventListener('fullscreenchange', draw)
  draw()
}

/** Keeps the screen on while the page is visible, if the browser supports that. */
export function keepAwake(): void {
  const hold = () => {
    if (document.visibilityState === 'visible') navigator.wakeLock?.request('screen').catch(() => undefined)
  }
  document.addEventListener('visibilitychange', hold)
  hold()
}

const STEP = 0.05
const SMALLEST = 0.4

/**
 * Makes the texts of a part smaller until they have room (`--fit` in the style sheet), now and when its size changes. No
 * text gets smaller than people can read (`--least`). If that is too large, calls `shorten` with 1, 2, … until it returns
 * false: each time it names fewer goods. Then cuts long names (`data-cut`).
 */
export function fitTexts(part: HTMLElement, shorten: (step: number) => boolean): () => void {
  function hasRoom(): boolean {
    for (let scale = 1; scale > SMALLEST; scale -= STEP) {
      part.style.setProperty('--fit', scale.toFixed(2))
      if (part.scrollHeight <= part.clientHeight && part.scrollWidth <= part.clientWidth) return true
    }
    return false
  }
  function fit(): void {
    delete part.dataset['cut']
    for (let step = 0; shorten(step); step++) if (hasRoom()) return
    part.dataset['cut'] = ''
    hasRoom()
  }
  new ResizeObserver(fit).observe(part)
  return fit
}
