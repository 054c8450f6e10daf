import type { Context } from 'hono'
import type { AgentAnswer, AgentOperationName } from './operations.ts'

type Frozen<T> = T extends object ? { readonly [K in keyof T]: Frozen<T[K]> } : T

/** Answers an operation. The compiler checks that the body fits the schema. */
export function reply<N extends AgentOperationName>(
  c: Context,
  _operation: N,
  body: Frozen<AgentAnswer<N>>,
  status: 200 | 503 = 200,
): Response {
  return c.json(body as object, status)
}
