import type { Child } from 'hono/jsx'
import type { PageContext } from '../frame/page.ts'

/**
 * Filters of a list, as a form that changes the query of the page. With scripts each change applies at once; the button
 * is for browsers without.
 */
export function FilterBar({ at, apply, children }: { at: PageContext; apply?: string; children?: Child }) {
  return (
    <form
      class="filters"
      method="get"
      action={at.path}
      role="search"
      hx-get={at.path}
      hx-trigger="change, submit"
      hx-target="#results"
      hx-select="#results"
      hx-swap="outerHTML show:none"
      hx-push-url="true"
    >
      {children}
      <button type="submit" class="button">
        {apply ?? at.texts.frame.apply}
      </button>
    </form>
  )
}

/** The part of a page that its filters replace. */
export function Results({ children }: { children?: Child }) {
  return (
    <div id="results" class="stack">
      {children}
    </div>
  )
}
