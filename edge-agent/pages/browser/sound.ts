import { MELODIES } from '../model/tones.ts'
import { slot, type PageContext } from './elements.ts'

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

/** Plays a melody for a result. */
type PlaySound = (tone: string) => void

const NOTE_SECONDS = 0.14
const VOLUME = 0.2
/** Name of the browser's setting. The browser keeps it after a reload. */
const MUTED = 'untag-muted'

/**
 * Prepares the sounds of this page, and the button that mutes them in this browser. Without `sounds` in the agent's
 * configuration the page has no button and stays silent. Browsers play sounds only after the first click or key on the
 * page, unless their settings allow them for this address.
 */
export function openSound({ texts }: PageContext): PlaySound {
  const button = document.querySelector<HTMLButtonElement>('[data-slot="mute"]')
  if (!button) return () => undefined
  const toggle = button
  let isMuted = read()
  let audio: AudioContext | undefined

  function draw(): void {
    toggle.setAttribute('aria-pressed', String(isMuted))
    toggle.textContent = isMuted ? texts.soundOff : texts.soundOn
  }

  slot('mute').addEventListener('click', () => {
    isMuted = !isMuted
    store(isMuted)
    draw()
  })
  for (const event of ['pointerdown', 'keydown'])
    document.addEventListener(event, () => void (audio ??= new AudioContext()).resume())
  draw()

  return (tone) => {
    const notes = MELODIES[tone as keyof typeof MELODIES] as readonly number[] | undefined
    if (isMuted || !notes) return
    audio ??= new AudioContext()
    if (audio.state !== 'running') return
    // Tests and technicians read the last melody here.
    document.body.dataset['sound'] = tone
    const start = audio.currentTime
    for (const [i, frequency] of notes.entries()) playNote(audio, frequency, start + i * NOTE_SECONDS)
  }
}

function playNote(audio: AudioContext, frequency: number, atSeconds: number): void {
  const oscillator = audio.createOscillator()
  const gain = audio.createGain()
  oscillator.frequency.value = frequency
  // The volume falls to zero, so that the note ends without a click.
  gain.gain.setValueAtTime(VOLUME, atSeconds)
  gain.gain.linearRampToValueAtTime(0, atSeconds + NOTE_SECONDS)
  oscillator.connect(gain).connect(audio.destination)
  oscillator.start(atSeconds)
  oscillator.stop(atSeconds + NOTE_SECONDS)
}

/** A browser may forbid storage. Then the choice lasts until the page closes. */
function read(): boolean {
  try {
    return localStorage.getItem(MUTED) === 'true'
  } catch {
    return false
  }
}

function store(isMuted: boolean): void {
  try {
    localStorage.setItem(MUTED, String(isMuted))
  } catch {
    return
  }
}
