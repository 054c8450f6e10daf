import type { Child } from 'hono/jsx'
import type { PageContext } from '../frame/page.ts'

/**
 * A part of a page that the browser fetches again after each change of the page's topics (frame/live.ts), and every 30
 * seconds in case a message was lost. The browser waits while the user types in the part or has a menu of it open.
 */
export function Live({ at, id, children }: { at: PageContext; id: string; children?: Child }) {
  const query = [...at.query].length === 0 ? '' : `?${at.query}`
  return (
    <div
      id={id}
      class="stack wide"
      data-live
      hx-get={`${at.path}${query}`}
      hx-select={`#${id}`}
      hx-trigger="sse:changed, every 30s"
      hx-swap="outerHTML show:none"
    >
      {children}
    </div>
  )
}
