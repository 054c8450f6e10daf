import { parameter } from './protocol/elements.ts'
import { result } from '../kit/device.ts'
import type { CommandResult } from '../kit/device.ts'
import type { TagAccess } from './tag-access.ts'

// Result codes of C1G2KillOpSpecResult.
const NO_ANSWER = 4
const READER_ERROR = 5
const RESULTS: Readonly<Record<number, string>> = {
  1: 'the tag has kill password zero and cannot be killed',
  2: 'the tag receives too little power; hold it closer',
  3: 'the tag refused',
  [NO_ANSWER]: 'the tag does not answer any more',
  [READER_ERROR]: 'the reader failed during the operation',
}

/**
 * Kills one tag for ever; `password` has 8 hex digits. Once the reader has received the command, the outcome is
 * `unknown` until the tag answers: the tag may be dead and its report lost. Never rejects.
 */
export async function killTag(
  access: TagAccess,
  epc: string,
  password: string,
  signal: AbortSignal,
): Promise<CommandResult> {
  const KillPassword = Number.parseInt(password, 16)
  const answer = await access.run(
    epc,
    (nextId) => [parameter('C1G2Kill', { OpSpecID: nextId(), KillPassword })],
    signal,
  )
  if (answer.kind === 'notExecuted') return answer.result
  const resultCode = answer.kind === 'results' ? answer.results[0]?.fields.Result : undefined
  if (resultCode === 0) return result('confirmed', true, 'acknowledged', 'the tag is dead')
  if (resultCode === undefined)
    return result(
      'unknown',
      true,
      signal.aborted ? 'cancelled' : 'answer_lost',
      'the reader did not report the result of the tag',
    )
  // A killed tag may not answer, and a reader error says nothing about the tag.
  if (resultCode === NO_ANSWER || resultCode === READER_ERROR)
    return result('unknown', true, 'answer_lost', RESULTS[resultCode])
  return result('failed', true, 'refused', RESULTS[resultCode] ?? `result ${resultCode}`)
}
