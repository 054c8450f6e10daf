/**
 * Sound and vibration for new alarms on the page of alarms. A message of the event stream refreshes the part with
 * `data-alarms`, the ids of open alarms. An id that was not there before is a new alarm.
 */

const SETTING = 'untag-alarm-sound'
/** Two rising tones, twice: Hz and start in seconds. */
const TONES = [
  [740, 0],
  [988, 0.18],
  [740, 0.5],
  [988, 0.68],
] as const
const TONE_SECONDS = 0.16
const VIBRATION_MS = [250, 120, 250]

let known: ReadonlySet<string> | undefined
let audio: AudioContext | undefined

function isOn(): boolean {
  return localStorage.getItem(SETTING) !== 'off'
}

/** Ids of open alarms on the page; undefined on other pages. */
function shownAlarms(): ReadonlySet<string> | undefined {
  const text = document.querySelector('[data-alarms]')?.getAttribute('data-alarms')
  return text === undefined || text === null ? undefined : new Set(text.split(' ').filter((id) => id !== ''))
}

function ring(): void {
  if (navigator.userActivation.hasBeenActive && 'vibrate' in navigator) navigator.vibrate(VIBRATION_MS)
  if (!audio || audio.state !== 'running') return
  for (const [hertz, start] of TONES) {
    const tone = audio.createOscillator()
    const volume = audio.createGain()
    const atSeconds = audio.currentTime + start
    tone.frequency.value = hertz
    volume.gain.setValueAtTime(0.3, atSeconds)
    volume.gain.exponentialRampToValueAtTime(0.001, atSeconds + TONE_SECONDS)
    tone.connect(volume).connect(audio.destination)
    tone.start(atSeconds)
    tone.stop(atSeconds + TONE_SECONDS)
  }
}

/** Rings if the page shows an alarm that it did not show before. */
function compare(): void {
  const shown = shownAlarms()
  const isNew = shown && known && [...shown].some((id) => !known?.has(id))
  known = shown
  if (!isNew) return
  if (isOn()) ring()
  document.dispatchEvent(new CustomEvent('untag:alarm', { detail: { rang: isOn() } }))
}

/** Shows the switch with its state. Browsers play sound only after a touch of the page. */
function showSwitch(): void {
  const part = document.querySelector<HTMLElement>('[data-sound]')
  if (!part) return
  const isBlocked = isOn() && !navigator.userActivation.hasBeenActive
  const shown: Readonly<Record<string, boolean>> = { on: isOn(), off: !isOn(), blocked: isBlocked }
  part.querySelector('button')?.setAttribute('aria-pressed', `${isOn()}`)
  for (const each of part.querySelectorAll<HTMLElement>('[data-when]'))
    each.hidden = shown[each.dataset['when'] ?? ''] !== true
  part.hidden = false
}

document.addEventListener('click', (event) => {
  if (shownAlarms() === undefined) return
  audio ??= new AudioContext()
  void audio.resume()
  const button = event.target instanceof Element ? event.target.closest('[data-sound] button') : null
  if (button) localStorage.setItem(SETTING, isOn() ? 'off' : 'on')
  if (button && isOn()) void audio.resume().then(ring)
  showSwitch()
})

// A closed menu no longer delays the refresh of its part. All parts refresh, so that their numbers agree.
document.addEventListener(
  'toggle',
  (event) => {
    if ((event as ToggleEvent).newState !== 'closed' || !(event.target instanceof Element)) return
    if (event.target.closest('[data-live]') === null) return
    for (const part of document.querySelectorAll('[data-live]')) part.dispatchEvent(new Event('sse:changed'))
  },
  true,
)

function update(): void {
  compare()
  showSwitch()
}
document.addEventListener('htmx:afterSettle', update)
update()

export {}
