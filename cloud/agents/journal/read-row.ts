import { JournalBody } from '../../../policy/journal.ts'

/** What of a journal row can be applied. */
export interface ReadRow {
  readonly body: JournalBody
  /** What cannot be read, in words: the row stays unapplied, and is tried again as a whole after an upgrade. */
  readonly fault?: string
}

/**
 * Reads a row. Of one that does not fit the evidence counts all the same if that can be read: what was used up must not be lent
 * again because a device told nonsense with it. Applied once more later it comes to the same; an event would be told twice.
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
