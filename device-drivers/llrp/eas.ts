import { parameter } from './protocol/elements.ts'
import { EAS_WORD, easOfChip, TID_WORDS } from './protocol/eas-chips.ts'
import { result } from '../kit/device.ts'
import type { CommandResult } from '../kit/device.ts'
import type { OperationResult, TagAccess } from './tag-access.ts'

// Result codes of C1G2WriteOpSpecResult.
const WRITTEN = 0
const REFUSALS: Readonly<Record<number, string>> = {
  1: 'the tag has no such word',
  2: 'the tag requires its access password; set "password" of "eas"',
  3: 'the tag receives too little power; hold it closer',
  4: 'the tag refused',
  5: 'the tag does not answer any more',
  6: 'the reader cannot do it',
  7: 'the access password is wrong',
}

export interface EasOptions {
  readonly access: TagAccess
  readonly epc: string
  /** 8 hex digits; zeros for tags without a password. */
  readonly password: string
  readonly signal: AbortSignal
}

type ChipReading =
  | { readonly kind: 'seen'; readonly tid: readonly number[]; readonly word: number }
  | { readonly kind: 'unseen'; readonly why: CommandResult }

const notReadable = (detail: string): ChipReading => ({
  kind: 'unseen',
  why: result('failed', false, 'not_ready', detail),
})
const wordsOf = (read: OperationResult | undefined): readonly number[] | null =>
  read?.name === 'C1G2ReadOpSpecResult' && read.fields.Result === 0 ? read.fields.ReadData : null

/** Reads the chip's model and its configuration word. Changes nothing. */
async function readChip({ access, epc, password, signal }: EasOptions): Promise<ChipReading> {
  const AccessPassword = Number.parseInt(password, 16)
  const read = (OpSpecID: number, { bank: MB, word: WordPointer }: { bank: number; word: number }, WordCount: number) =>
    parameter('C1G2Read', { OpSpecID, AccessPassword, MB, WordPointer, WordCount })
  const answer = await access.run(
    epc,
    (nextId) => [read(nextId(), TID_WORDS, TID_WORDS.count), read(nextId(), EAS_WORD, 1)],
    signal,
  )
  if (answer.kind === 'notExecuted') return { kind: 'unseen', why: { ...answer.result, commanded: false } }
  if (answer.kind === 'silent')
    return notReadable(
      signal.aborted ? 'the command was cancelled before the tag came' : 'the tag did not come into the field',
    )
  const tid = wordsOf(answer.results[0])
  if (!tid || tid.length < TID_WORDS.count) return notReadable('the tag does not let its TID be read; hold it closer')
  // A chip without a configuration word refuses the second read. In that case `easOfChip` returns why this model cannot
  // be released.
  const word = wordsOf(answer.results[1])?.[0]
  const eas = easOfChip(tid)
  if (eas.kind === 'none') return { kind: 'unseen', why: result('failed', false, 'not_supported', eas.why) }
  return word === undefined
    ? notReadable(`the ${eas.chip} does not let its configuration word be read; hold it closer`)
    : { kind: 'seen', tid, word }
}

const isOn = (word: number): boolean => (word & EAS_WORD.mask) !== 0

/**
 * Switches the EAS bit of one tag off, with the standard commands Read and Write. A write can only toggle the bit, so
 * the driver reads the bit first. If the bit is off, the driver writes nothing. After one toggle the driver reads the
 * bit again, and the state of the bit decides the result. Never rejects.
 */
export async function switchEasOff(options: EasOptions): Promise<CommandResult> {
  const { access, epc, password, signal } = options
  const before = await readChip(options)
  if (before.kind === 'unseen') return before.why
  if (!isOn(before.word)) return result('confirmed', true, 'acknowledged', 'its EAS bit was off already')

  const { bank: MB, word: WordPointer, mask } = EAS_WORD
  const AccessPassword = Number.parseInt(password, 16)
  const answer = await access.run(
    epc,
    (nextId) => [parameter('C1G2Write', { OpSpecID: nextId(), AccessPassword, MB, WordPointer, WriteData: [mask] })],
    signal,
  )
  if (answer.kind === 'notExecuted') return answer.result
  const resultCode = answer.kind === 'results' ? answer.results[0]?.fields.Result : undefined
  if (signal.aborted && resultCode !== WRITTEN)
    return result('unknown', true, 'cancelled', 'the command was cancelled before the tag showed the result')

  const after = await readChip({ ...options, signal: new AbortController().signal })
  if (after.kind === 'seen' && !isOn(after.word))
    return result('confirmed', true, 'acknowledged', 'the tag shows that its EAS bit is off')
  const refusal =
    resultCode === undefined || resultCode === WRITTEN ? undefined : (REFUSALS[resultCode] ?? `result ${resultCode}`)
  if (after.kind === 'seen')
    return refusal
      ? result('failed', true, 'refused', refusal)
      : result('failed', true, 'no_confirmation', 'its EAS bit is still on')
  if (resultCode === WRITTEN)
    return result(
      'confirmed',
      true,
      'acknowledged',
      'the tag confirmed the write, and left before it could be read again',
    )
  return result('unknown', true, 'answer_lost', refusal ?? 'the reader did not report the result of the tag')
}
