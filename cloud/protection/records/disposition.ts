import { z } from 'zod'
import { ALARM_DISPOSITIONS, type AlarmDisposition } from '../../../policy/vocabulary.ts'
import { eurosOf, iso } from '../../platform/operations/fields.ts'
import type { Row } from '../../platform/persistence/schema.ts'

/** Maximum number of earlier dispositions that an alarm keeps. */
export const EARLIER_LIMIT = 10

/** Disposition of an alarm, with operator and time. */
export const Disposition = z.strictObject({
  disposition: z.enum(ALARM_DISPOSITIONS),
  operatorId: z.string(),
  recoveredValue: z.number().optional(),
  disposedAt: z.string(),
})
export type Disposition = z.infer<typeof Disposition>

/** A stored disposition in API form. */
export function toDisposition(row: Row<'alarm_disposition'>): Disposition {
  return {
    disposition: row.disposition as AlarmDisposition,
    operatorId: row.operator_id,
    ...(row.recovered_cent !== null && { recoveredValue: eurosOf(row.recovered_cent) }),
    disposedAt: iso(row.disposed_ms),
  }
}

/** Dispositions before the present one, the latest first. */
export function earlierOf(row: Row<'alarm_disposition'> | undefined): readonly Disposition[] {
  return row?.earlier ? (JSON.parse(row.earlier) as Disposition[]) : []
}
