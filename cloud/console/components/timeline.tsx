import type { Child } from 'hono/jsx'
import type { Formats } from '../texts/formats.ts'
import type { Tone } from './badge.tsx'

/** An event of a timeline. */
export interface TimelineEntry {
  readonly atMs: number
  readonly title: Child
  readonly text?: Child
  readonly tone?: Tone
}

/** Events in the given order, with their times. */
export function Timeline({ entries, formats }: { entries: readonly TimelineEntry[]; formats: Formats }) {
  return (
    <ol class="timeline">
      {entries.map(({ atMs, title, text, tone = 'plain' }) => (
        <li class={tone}>
          <div>
            <strong>{title}</strong> <Moment ms={atMs} text={formats.moment(atMs)} />
            {text === undefined ? null : <div class="soft">{text}</div>}
          </div>
        </li>
      ))}
    </ol>
  )
}

/** A time as text and for programs. */
export function Moment({ ms, text }: { ms: number; text: string }) {
  return <time datetime={new Date(ms).toISOString()}>{text}</time>
}
