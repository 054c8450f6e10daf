/** Keeps the screen on while the page is in sight, where the browser can. */
export function keepAwake(): void {
  const hold = () => {
    if (document.visibilityState === 'visible') navigator.wakeLock?.request('screen').catch(() => undefined)
  }
  document.addEventListener('visibilitychange', hold)
  hold()
}
