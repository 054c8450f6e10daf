import type { Child } from 'hono/jsx'
import type { IconName } from '../frame/page.ts'
import { Icon } from './icons.tsx'

/** A button that opens the print dialog. Browsers without scripts do not show it. */
export function PrintButton({ label }: { label: string }) {
  return (
    <button type="button" class="button needs-script" data-print>
      {label}
    </button>
  )
}

/** Says why a list is empty, and what fills it. */
export function EmptyState({ icon = 'check', title, children }: { icon?: IconName; title: string; children?: Child }) {
  return (
    <div class="empty">
      <Icon name={icon} size={40} />
      <strong>{title}</strong>
      {children === undefined ? null : <p>{children}</p>}
    </div>
  )
}

/** `alarm` is red and only for alarms. */
export type Tone = 'plain' | 'ok' | 'info' | 'warn' | 'alarm'

/** A state in a word. */
export function Badge({ tone = 'plain', children }: { tone?: Tone; children?: Child }) {
  return <span class={`badge ${tone}`}>{children}</span>
}

/** A part of a page with a heading. `flush`: its content, such as a table, reaches the border. */
export function Card({
  title,
  aside,
  flush = false,
  tone,
  children,
}: {
  title?: Child
  aside?: Child
  flush?: boolean
  tone?: 'alarm'
  children?: Child
}) {
  return (
    <section class={['card', flush ? 'flush' : '', tone ?? ''].join(' ').trim()}>
      {title === undefined ? null : (
        <header>
          <h2>{title}</h2>
          {aside}
        </header>
      )}
      {children}
    </section>
  )
}

/** A figure with its label; with `href` it leads to the page behind the figure. */
export interface FigureView {
  readonly label: string
  readonly value: string
  readonly note?: string | undefined
  readonly tone?: Tone | undefined
  readonly href?: string | undefined
}

/** Figures side by side. */
export function Figures({ figures }: { figures: readonly FigureView[] }) {
  return (
    <ul class="figures">
      {figures.map(({ label, value, note, tone = 'plain', href }) => {
        const content = (
          <>
            <span class="label">{label}</span>
            <span class="value">{value}</span>
            {note === undefined ? null : <span class="note">{note}</span>}
          </>
        )
        return (
          <li>
            {href === undefined ? (
              <div class={`figure ${tone}`}>{content}</div>
            ) : (
              <a class={`figure ${tone}`} href={href}>
                {content}
              </a>
            )}
          </li>
        )
      })}
    </ul>
  )
}

/** Names and values of one thing. */
export function Pairs({ pairs }: { pairs: readonly (readonly [name: string, value: Child])[] }) {
  return (
    <dl class="pairs">
      {pairs.map(([name, value]) => (
        <>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </>
      ))}
    </dl>
  )
}
