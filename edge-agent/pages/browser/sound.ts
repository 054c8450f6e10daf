import { slot, type PageContext } from './elements.ts'
import type { GateTone } from '../model/gate-view.ts'
import type { Tone } from '../model/result-view.ts'

/** Frequencies that are played one after the other, Hz. Every result has its own melody. */
const MELODIES: Readonly<Record<Tone | Exclude<GateTone, 'ready' | 'lost' | 'way_out'>, readonly number[]>> = {
  granted: [784, 1_047],
  refused: [247, 196],
  staff: [523, 392, 523],
  unsure: [392, 330],
  note: [659],
  green: [784, 1_047],
  amber: [523, 392, 523],
  alarm: [988, 740, 988, 740],
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
