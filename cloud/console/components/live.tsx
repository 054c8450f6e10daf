import type { Child } from 'hono/jsx'
import type { PageContext } from '../frame/page.ts'

/** Places of the navigation that show how many tasks wait. */
const COUNT_PLACES = ['side', 'bar', 'more'] as const
export type CountPlace = (typeof COUNT_PLACES)[number]
/** Pages with counted tasks; a test compares them with the registry. */
export const COUNTED_PAGES = [
  '/console/alarms',
  '/console/approvals',
  '/console/help',
  '/console/exceptions',
  '/console/orders',
]

/** Id of the element with the number of waiting tasks of a page. */
export function countId(place: CountPlace, path: string): string {
  return `waiting-${place}${path.replaceAll('/', '-')}`
}

/** Selector of all these elements. */
export const WAITING_COUNTS = COUNTED_PAGES.flatMap((path) =>
  COUNT_PLACES.map((place) => `#${countId(place, path)}`),
).join(',')

/**
 * A part of a page that the browser fetches again after each change of the page's topics (frame/console.tsx), and every 30
 * seconds in case a message was lost. The browser waits while the user types in the part or has a menu of it open. The
 * same answer refreshes the numbers of the navigation, and the element with the id `also`.
 */
export function Live({ at, id, also, children }: { at: PageContext; id: string; also?: string; children?: Child }) {
  const query = [...at.query].length === 0 ? '' : `?${at.query}`
  return (
    <div
      id={id}
      class="stack wide"
      data-live
      hx-get={`${at.path}${query}`}
      hx-select={`#${id}`}
      hx-select-oob={also === undefined ? WAITING_COUNTS : `#${also},${WAITING_COUNTS}`}
      hx-trigger="sse:changed, every 30s"
      hx-swap="outerHTML show:none"
    >
      {children}
    </div>
  )
}
