import { jsx } from 'hono/jsx'

/**
 * hono/jsx renders within an AsyncLocalStorage where it finds one, so that components which wait can have a context. On Node 20
 * and 22 the first such render switches on the bookkeeping of asynchronous work for the whole process and for good: a tenth of
 * the CPU time of every request that comes after (bench/). Our pages are rendered in one go. So hono looks for it here, once,
 * while it is not to be found, and renders without from then on. Costs nothing on Node 24, where that bookkeeping is gone.
 */
const { getBuiltinModule } = process
process.getBuiltinModule = () => undefined
try {
  String(jsx('p', {}))
} finally {
  process.getBuiltinModule = getBuiltinModule
}
