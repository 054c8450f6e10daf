import { JournalBody } from '../../../policy/journal.ts'

/** The readable part of a journal row. */
export interface ReadRow {
  readonly body: JournalBody
  /** Reading error; the row stays unapplied and is retried after an upgrade. */
  readonly fault?: string
}

/**
 * Reads a row. Returns the evidence of an invalid row if it is readable: the cloud must not lease used rights again.
 * Evidence may be applied twice; an event must not be.
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
