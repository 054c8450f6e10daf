/** Keeps the screen on while the page is visible, if the browser supports that. */
export function keepAwake(): void {
  const hold = () => {
    if (document.visibilityState === 'visible') navigator.wakeLock?.request('screen').catch(() => undefined)
  }
  document.addEventListener('visibilitychange', hold)
  hold()
}
