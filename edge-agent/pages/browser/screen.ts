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

/** Makes the texts of a part smaller until they have room (`--fit` in the style sheet), now and when its size changes. */
export function fitTexts(part: HTMLElement): () => void {
  function fit(): void {
    for (let scale = 1; scale > SMALLEST; scale -= STEP) {
      part.style.setProperty('--fit', scale.toFixed(2))
      if (part.scrollHeight <= part.clientHeight && part.scrollWidth <= part.clientWidth) return
    }
  }
  new ResizeObserver(fit).observe(part)
  return fit
}
