import type { Child } from 'hono/jsx'

/** `alarm` is red and only for alarms. */
export type Tone = 'plain' | 'ok' | 'info' | 'warn' | 'alarm'

/** A state in a word. */
export function Badge({ tone = 'plain', children }: { tone?: Tone; children?: Child }) {
  return <span class={`badge ${tone}`}>{children}</span>
}
