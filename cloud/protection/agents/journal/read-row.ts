import { JournalBody } from '../../../../policy/journal.ts'

/** The readable part of a journal row. */
export interface ReadRow {
  readonly body: JournalBody
  /** Why the row is invalid. Such a row stays unapplied, and the cloud retries it after an upgrade. */
  readonly fault?: string
}

/**
 * Parses a row. If the row is invalid but its evidence is valid, returns the evidence, so that the cloud does not lease
 * used rights again. The event is dropped until the retry, because the cloud must store an event only once. The cloud
 * may apply the same evidence twice.
 */
export function readRow(body: unknown): ReadRow {
  const whole = JournalBody.safeParse(body)
  if (whole.success) return { body: body as JournalBody }
  const [issue] = whole.error.issues
  const path = [...(issue?.path ?? []), ...(issue?.code === 'unrecognized_keys' ? issue.keys.slice(0, 3) : [])].join(
    '.',
  )
  const fault = `${path}: ${issue?.message}`.slice(0, 200).toWellFormed().replaceAll('\0', '')
  const { atMs, evidence } = body as Record<string, unknown>
  const core = evidence === undefined ? undefined : JournalBody.safeParse({ atMs, evidence })
  return { body: core?.success ? core.data : { atMs: 0 }, fault }
}
