import type { Child } from 'hono/jsx'
import type { Tone } from './card.tsx'
import { Icon } from './icons.tsx'
import type { IconName } from '../frame/page.ts'

const ICONS: Readonly<Record<Tone, IconName>> = {
  plain: 'info',
  info: 'info',
  ok: 'check',
  warn: 'warning',
  alarm: 'alarm',
}

/** A message in the page. `isUrgent`: screen readers read it at once. */
export function Notice({
  tone = 'info',
  title,
  isUrgent = false,
  children,
}: {
  tone?: Tone
  title: string
  isUrgent?: boolean
  children?: Child
}) {
  return (
    <div class={`notice ${tone}`} {...(isUrgent && { role: 'alert' })}>
      <Icon name={ICONS[tone]} />
      <div>
        <strong>{title}</strong>
        {children ? <p>{children}</p> : null}
      </div>
    </div>
  )
}

/** Place of the message after an action; empty without one. */
export function Toasts({ message }: { message: string | undefined }) {
  return (
    <div id="toasts" class="toasts" role="status">
      {message === undefined ? null : (
        <p class="toast">
          <Icon name="check" />
          {message}
        </p>
      )}
    </div>
  )
}
