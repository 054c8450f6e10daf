import type { Child } from 'hono/jsx'
import type { IconName } from '../frame/page.ts'
import { Icon } from './icons.tsx'

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
