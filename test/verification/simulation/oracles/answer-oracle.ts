import { OPERATION_TABLE } from '../../../../cloud/service/operation-table.ts'
import type { Core } from '../virtual/core.ts'
import type { SimResponse, SimRequest } from '../virtual/http.ts'

/** Records each repeatable answer of the cloud, and compares it with the answer to a repeated request. */
export interface AnswerOracle {
  answered(request: SimRequest, answer: SimResponse): void
  /** Deletes the recorded answers, for example after a restore of the cloud. */
  forget(): void
}

/** Time in which a repeated request must get the same answer, ms (ADR requests). */
const WINDOW_MS = 24 * 3_600_000

/**
 * Creates an oracle which checks that an Idempotency-Key always gets the same bytes (P5), and that no answer has status
 * 500.
 */
export function answerOracle(core: Core): AnswerOracle {
  const known = new Map<string, { atMs: number; text: string }>()
  return {
    forget: () => known.clear(),
    answered({ url, headers }, { status, text }) {
      const operation = url.slice(url.lastIndexOf('/') + 1)
      if (status === 500) core.violate('fault', `${operation} answered 500: ${text}`)
      const key = headers['idempotency-key']
      // Read operations return the current state, so their answers may change.
      if (key === undefined || status !== 200 || OPERATION_TABLE.get(operation)?.changes !== true) return
      const whole = `${headers['authorization']} ${operation} ${key}`
      const before = known.get(whole)
      if (before && core.scheduler.nowMs - before.atMs < WINDOW_MS && before.text !== text)
        core.violate('I10', `${operation} with ${key} answered ${before.text} and then ${text}`)
      if (!before) known.set(whole, { atMs: core.scheduler.nowMs, text })
    },
  }
}
