import { pause, type Timers } from '../../policy/platform.ts'
import { all, first, message, parameter, type AnyParameter, type Message, type Parameter } from './protocol/elements.ts'
import { result, type CommandResult } from '../kit/device.ts'
import type { LlrpConversation, LlrpListener } from './conversation.ts'
import { EAS_WORD, easOfChip, TID_WORDS } from './protocol/messages.ts'

// LLRP 1.0.1, 15.2.1.5. The EPC begins at bit 32 of Gen2 memory bank 1, after CRC and PC.
const EPC_BANK = 1
const EPC_AT = 0x20
const GEN2 = 1
const ANY = 0
const AFTER_SO_MANY = 1
const WITH_THE_TAG_REPORT = 0
const SPEC = 1
const MAX_OPERATION_IDS = 65_535
const RESULTS = ['C1G2ReadOpSpecResult', 'C1G2WriteOpSpecResult', 'C1G2KillOpSpecResult'] as const

/** Time for the tag to come into the field, ms. */
const WITHIN_MS = 2_000

type TagOperation = Parameter<'C1G2Read'> | Parameter<'C1G2Write'> | Parameter<'C1G2Kill'>
type OperationResult = Parameter<(typeof RESULTS)[number]>

/** Result of operations on one tag. */
type AccessAnswer =
  /** The results, in the order of the operations. The last results may be missing. */
  | { readonly kind: 'results'; readonly results: readonly OperationResult[] }
  /** The reader did not execute the operations. */
  | { readonly kind: 'notExecuted'; readonly result: CommandResult }
  /** No report arrived: the tag was not in the field, or the report was lost. */
  | { readonly kind: 'silent' }

/** Executes operations on single tags over one connection, one after the other. */
export interface TagAccess {
  /**
   * Executes `operations` once on the tag with this EPC. `nextId` returns a unique id for each operation. Never
   * rejects.
   */
  run(
    epc: string,
    operations: (nextId: () => number) => readonly TagOperation[],
    signal: AbortSignal,
  ): Promise<AccessAnswer>
}

/** True for a possible Gen2 EPC in upper-case hex: whole 16-bit words, at most 496 bits. */
export function isEpc(text: string): boolean {
  return /^(?:[0-9A-F]{4}){1,31}$/.test(text)
}

/** An AccessSpec that the reader executes once, on the tag with this EPC. */
function accessSpec(id: number, epc: string, operations: readonly TagOperation[]): Message<'ADD_ACCESSSPEC'> {
  const count = epc.length * 4
  const target = parameter('C1G2TargetTag', {
    MB: EPC_BANK,
    Match: true,
    Pointer: EPC_AT,
    TagMask: { count, hex: 'F'.repeat(epc.length) },
    TagData: { count, hex: epc },
  })
  return message(
    'ADD_ACCESSSPEC',
    id,
    {},
    parameter(
      'AccessSpec',
      { AccessSpecID: SPEC, AntennaID: ANY, ProtocolID: GEN2, CurrentState: false, ROSpecID: ANY },
      parameter('AccessSpecStopTrigger', { AccessSpecStopTrigger: AFTER_SO_MANY, OperationCountValue: 1 }),
      parameter('AccessCommand', {}, parameter('C1G2TagSpec', {}, target), ...operations),
      parameter('AccessReportSpec', { AccessReportTrigger: WITH_THE_TAG_REPORT }),
    ),
  )
}

/** Results of these operations in a report about this tag; null if there are none. */
function resultsIn(
  report: Message<'RO_ACCESS_REPORT'>,
  epc: string,
  ids: readonly number[],
): readonly OperationResult[] | null {
  for (const tag of all(report, 'TagReportData')) {
    if ((first(tag, 'EPC_96')?.fields.EPC ?? first(tag, 'EPCData')?.fields.EPC.hex) !== epc) continue
    const isResult = (param: AnyParameter): param is OperationResult =>
      (RESULTS as readonly string[]).includes(param.name)
    const results = tag.params.filter(isResult).filter(({ fields }) => ids.includes(fields.OpSpecID))
    if (results.length > 0)
      return results.toSorted((a, b) => ids.indexOf(a.fields.OpSpecID) - ids.indexOf(b.fields.OpSpecID))
  }
  return null
}

/** Makes the tag operations of a connection. While an operation runs, `listener.onReport` is replaced. */
export function tagAccess(
  conversation: LlrpConversation,
  listener: LlrpListener,
  timers: Timers,
  timeoutMs: number,
): TagAccess {
  let lastId = 0
  const nextId = () => {
    lastId = (lastId % MAX_OPERATION_IDS) + 1
    return lastId
  }

  /**
   * Deletes the AccessSpec. If the reader may still have the AccessSpec, ends the connection, because each new
   * connection deletes all AccessSpecs.
   */
  async function remove(isCarriedOut: boolean): Promise<void> {
    const deleted = await conversation.request(
      'DELETE_ACCESSSPEC_RESPONSE',
      (id) => message('DELETE_ACCESSSPEC', id, { AccessSpecID: SPEC }),
      { timeoutMs },
    )
    // The reader deletes an executed AccessSpec itself, and may refuse a second deletion.
    if (deleted.kind === 'lost' || (deleted.kind === 'refused' && !isCarriedOut))
      conversation.end(`an operation on a tag could not be cancelled: ${deleted.detail}`)
  }

  async function run(
    epc: string,
    operations: (nextId: () => number) => readonly TagOperation[],
    signal: AbortSignal,
  ): Promise<AccessAnswer> {
    const pending = operations(nextId)
    const notDone = (...why: Parameters<typeof result>): AccessAnswer => ({
      kind: 'notExecuted',
      result: result(...why),
    })
    const added = await conversation.request('ADD_ACCESSSPEC_RESPONSE', (id) => accessSpec(id, epc, pending), {
      timeoutMs,
      signal,
    })
    if (added.kind === 'refused') return notDone('failed', false, 'refused', added.detail)
    if (added.kind === 'lost') {
      // The reader may have received the AccessSpec. In that case the reader would reject the next AccessSpec with the
      // same id.
      if (added.possiblySent) await remove(false)
      return notDone('failed', false, signal.aborted ? 'cancelled' : 'not_ready', added.detail)
    }

    let reported: readonly OperationResult[] | null = null
    const waiting = new AbortController()
    const stopWaiting = () => waiting.abort(new DOMException('there is nothing more to wait for', 'AbortError'))
    const ids = pending.map(({ fields }) => fields.OpSpecID)
    listener.onReport = (report) => {
      reported ??= resultsIn(report, epc, ids)
      if (reported) stopWaiting()
    }
    void conversation.ended.then(stopWaiting)
    signal.addEventListener('abort', stopWaiting, { once: true })
    try {
      const enabled = await conversation.request(
        'ENABLE_ACCESSSPEC_RESPONSE',
        (id) => message('ENABLE_ACCESSSPEC', id, { AccessSpecID: SPEC }),
        { timeoutMs, signal },
      )
      if (enabled.kind === 'refused') return notDone('failed', true, 'refused', enabled.detail)
      if (enabled.kind === 'lost' && !enabled.possiblySent)
        return notDone('failed', false, signal.aborted ? 'cancelled' : 'not_ready', enabled.detail)
      if (!reported) await pause(timers, WITHIN_MS, waiting.signal).catch(() => {})
    } finally {
      signal.removeEventListener('abort', stopWaiting)
      // Removes the AccessSpec, because the reader must not execute a waiting operation later.
      await remove(reported !== null)
      listener.onReport = undefined
    }
    return reported ? { kind: 'results', results: reported } : { kind: 'silent' }
  }

  return { run }
}

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

interface EasOptions {
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

// Result codes of C1G2KillOpSpecResult.
const NO_ANSWER = 4
const READER_ERROR = 5
const KILL_RESULTS: Readonly<Record<number, string>> = {
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
    return result('unknown', true, 'answer_lost', KILL_RESULTS[resultCode])
  return result('failed', true, 'refused', KILL_RESULTS[resultCode] ?? `result ${resultCode}`)
}
