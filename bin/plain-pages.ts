import { jsx } from 'hono/jsx'

/**
 * Makes hono/jsx render without AsyncLocalStorage. Call it before the first page.
 *
 * Hono uses AsyncLocalStorage for contexts of asynchronous components, which untag does not have. On Node 20 and 22 the first
 * use enables async hooks for the whole process, which costs a tenth of the CPU time of every later request (bench/). Hono
 * searches the module once, so this function hides it during a first render.
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
