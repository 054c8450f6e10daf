import { slot } from './elements.ts'

/** Makes the button that shows the page on the full screen, if the browser can do that. */
export function offerFullScreen(): void {
  const button = slot('full-screen')
  const draw = () => (button.hidden = !document.fullscreenEnabled || document.fullscreenElement !== null)
  button.addEventListener('click', () => void document.documentElement.requestFullscreen().catch(() => undefined))
  document.addEventListener('fullscreenchange', draw)
  draw()
}
