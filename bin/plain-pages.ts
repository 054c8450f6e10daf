import { jsx } from 'hono/jsx'

/**
 * Has hono/jsx render without an AsyncLocalStorage, from before the first page on.
 *
 * It renders within one where it finds one, so that components which wait can have a context. On Node 20 and 22 the first such
 * render switches on the bookkeeping of asynchronous work for the whole process and for good: a tenth of the CPU time of every
 * request that comes after (bench/). Our pages are rendered in one go. Hono looks for it once; here, while it is not to be found.
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
