import type { Tone } from '../model/result-view.ts'

/**
 * Inline icons, so that the page loads no font or image. The icons are decoration: the text beside an icon has the same
 * meaning.
 */
const PATHS = {
  check: 'M12 34 L26 48 L54 16',
  cross: 'M16 16 L48 48 M48 16 L16 48',
  question: 'M22 24 a10 10 0 1 1 14 9 q-4 2 -4 8 M32 51 v1',
  hand: 'M32 14 v22 M32 48 v2',
  info: 'M32 30 v20 M32 16 v1',
  arrow: 'M32 54 V12 M14 30 L32 12 L50 30',
} as const
type Shape = keyof typeof PATHS

const OF_TONE: Record<Tone, Shape> = {
  granted: 'check',
  refused: 'cross',
  staff: 'hand',
  unsure: 'question',
  note: 'info',
}

/** One icon. `name`: end of its CSS class. Screen readers skip the icon. */
function Icon({ shape, name }: { shape: Shape; name: string }) {
  return (
    <svg class={`icon icon-${name}`} viewBox="0 0 64 64" aria-hidden="true" focusable="false">
      <path d={PATHS[shape]} />
    </svg>
  )
}

/** All icons of the stage. The style sheet shows only the icon for the current tone. */
export function ToneIcons() {
  return (
    <div class="icons">
      {Object.entries(OF_TONE).map(([tone, shape]) => (
        <Icon shape={shape} name={tone} />
      ))}
    </div>
  )
}

/** All icons of the gate page. The style sheet shows only the icon for the current tone. */
export function GateIcons() {
  return (
    <div class="icons">
      <Icon shape="check" name="green" />
      <Icon shape="hand" name="amber" />
      <Icon shape="cross" name="alarm" />
      <Icon shape="question" name="lost" />
      <Icon shape="arrow" name="way_out" />
    </div>
  )
}

/** A receipt with its code. */
export function ReceiptIcon() {
  return (
    <svg class="icon receipt" viewBox="0 0 64 64" aria-hidden="true" focusable="false">
      <path d="M14 6 h36 v52 l-6 -5 -6 5 -6 -5 -6 5 -6 -5 -6 5 z" />
      <path d="M22 16 h8 v8 h-8 z M36 16 h6 M36 24 h6 v0 M22 32 h4 M32 32 h10 M22 40 h10 M38 40 h4" />
    </svg>
  )
}
