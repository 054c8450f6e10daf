import { z } from 'zod'
import { Failure } from '../../platform/foundation/failure.ts'

/** A row of a list that was refused. */
export const RowError = z.strictObject({ index: z.int(), field: z.string(), code: z.string(), message: z.string() })

/** Runs each row alone: a refused row does not stop the others. `done`: number of rows without an error. */
export async function runRows<T>(
  rows: readonly T[],
  run: (row: T) => Promise<void>,
): Promise<{ done: number; errors: z.infer<typeof RowError>[] }> {
  const errors: z.infer<typeof RowError>[] = []
  for (const [index, row] of rows.entries()) {
    try {
      await run(row)
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      const [detail] = error.extras.details ?? []
      const code = error.extras.reason ?? detail?.code ?? error.code
      errors.push({ index, field: detail?.path ?? '', code, message: error.message })
    }
  }
  return { done: rows.length - errors.length, errors }
}
