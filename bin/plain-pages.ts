import { jsx } from 'hono/jsx'

/**
 * Makes hono/jsx render without AsyncLocalStorage. Call it before the first page.
 *
 * Hono uses AsyncLocalStorage for asynchronous components; untag has none. On Node 20 and 22 the first use of
 * AsyncLocalStorage enables async hooks for the whole process. These hooks cost a tenth of the CPU time of every later
 * request (bench/). Hono looks for AsyncLocalStorage only once, so this function hides AsyncLocalStorage during a first
 * render.
 */
export function renderPlainly(): void {
  const { getBuiltinModule } = process
  process.getBuiltinModule = () => undefined
  try {
    String(jsx('p', {}))
  } finally {
    process.getBuiltinModule = getBuiltinModule
  }
}
