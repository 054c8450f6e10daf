import { pause } from '../../../policy/platform.ts'
import type { Timers } from '../../../policy/platform.ts'
import { all, first, message, parameter } from '../../protocols/llrp/elements.ts'
import type { Message } from '../../protocols/llrp/elements.ts'
import { result } from '../device.ts'
import type { CommandResult } from '../device.ts'
import type { LlrpConversation } from './conversation.ts'

// LLRP 1.0.1, 15.2.1.5; the EPC begins at bit 32 of Gen2's bank 1, behind CRC and PC.
const EPC_BANK = 1
const EPC_AT = 0x20
const GEN2 = 1
const ANY = 0
const AFTER_SO_MANY = 1
const WITH_THE_TAG_REPORT = 0

// C1G2KillOpSpecResult
const RESULTS: Readonly<Record<number, string>> = {
  1: 'its kill password is zero: it cannot be killed',
  2: 'it gets too little power; hold it closer',
  3: 'the tag says no',
  4: 'the tag does not answer any more',
  5: 'the reader cannot do it',
}

export interface KillOptions {
  readonly conversation: LlrpConversation
  readonly epc: string
  /** 8 hex digits. */
  readonly password: string
  readonly timeoutMs: number
  readonly timers: Timers
  readonly signal: AbortSignal
  /** Gets every report while the command runs; the returned function ends that. */
  listen(onReport: (report: Message<'RO_ACCESS_REPORT'>) => void): () => void
}

/** How long the tag may take to come into the field, ms. */
const WITHIN_MS = 2_000

/** Whether this can be the EPC of a Gen2 tag: whole 16-bit words, at most 496 bits, in upper-case hex. */
export function isEpc(text: string): boolean {
  return /^(?:[0-9A-F]{4}){1,31}$/.test(text)
}

/** What the reader shall do with the tag of this EPC and no other, once. */
export function killSpec(id: number, specId: number, epc: string, password: string): Message<'ADD_ACCESSSPEC'> {
  const count = epc.length * 4
  const target = parameter('C1G2TargetTag', {
    MB: EPC_BANK,
    Match: true,
    Pointer: EPC_AT,
    TagMask: { count, hex: 'F'.repeat(epc.length) },
    TagData: { count, hex: epc },
  })
  const command = parameter(
    'AccessCommand',
    {},
    parameter('C1G2TagSpec', {}, target),
    parameter('C1G2Kill', { OpSpecID: 1, KillPassword: Number.parseInt(password, 16) }),
  )
  return message(
    'ADD_ACCESSSPEC',
    id,
    {},
    parameter(
      'AccessSpec',
      { AccessSpecID: specId, AntennaID: ANY, ProtocolID: GEN2, CurrentState: false, ROSpecID: ANY },
      parameter('AccessSpecStopTrigger', { AccessSpecStopTrigger: AFTER_SO_MANY, OperationCountValue: 1 }),
      command,
      parameter('AccessReportSpec', { AccessReportTrigger: WITH_THE_TAG_REPORT }),
    ),
  )
}

/** The result of the kill in a report, if this is the one. */
function resultIn(report: Message<'RO_ACCESS_REPORT'>, epc: string): number | undefined {
  for (const tag of all(report, 'TagReportData')) {
    const seen = first(tag, 'EPC_96')?.fields.EPC ?? first(tag, 'EPCData')?.fields.EPC.hex
    const killed = first(tag, 'C1G2KillOpSpecResult')?.fields.Result
    if (seen === epc && killed !== undefined) return killed
  }
  return undefined
}

/**
 * Kills one tag, for ever. Until the spec is enabled nothing has happened; from then on only the tag's own answer
 * makes it other than `unknown`, for the tag may be dead and the report of it lost.
 */
export async function killTag(options: KillOptions): Promise<CommandResult> {
  const { conversation, epc, timeoutMs, signal } = options
  const specId = 1
  const added = await conversation.request('ADD_ACCESSSPEC_RESPONSE', (id) => killSpec(id, specId, epc, options.password), { timeoutMs, signal })
  if (added.kind === 'refused') return result('failed', false, 'refused', added.detail)
  if (added.kind === 'lost') return result('failed', false, 'not_ready', added.detail)

  let stopWaiting = () => {}
  let told: number | undefined
  const waiting = new AbortController()
  const stopListening = options.listen((report) => {
    told ??= resultIn(report, epc)
    if (told !== undefined) stopWaiting()
  })
  stopWaiting = () => waiting.abort(new DOMException('the tag has answered', 'AbortError'))
  void conversation.ended.then(stopWaiting)
  signal.addEventListener('abort', stopWaiting, { once: true })
  try {
    const enabled = await conversation.request('ENABLE_ACCESSSPEC_RESPONSE', (id) => message('ENABLE_ACCESSSPEC', id, { AccessSpecID: specId }), { timeoutMs, signal })
    if (enabled.kind === 'refused') return result('failed', true, 'refused', enabled.detail)
    if (enabled.kind === 'lost' && !enabled.handed) return result('failed', false, signal.aborted ? 'cancelled' : 'not_ready', enabled.detail)
    if (told === undefined) await pause(options.timers, WITHIN_MS, waiting.signal).catch(() => {})
  } finally {
    signal.removeEventListener('abort', stopWaiting)
    // What was not done yet must not be done later, when nobody asks for it any more.
    await conversation.request('DELETE_ACCESSSPEC_RESPONSE', (id) => message('DELETE_ACCESSSPEC', id, { AccessSpecID: specId }), { timeoutMs })
    stopListening()
  }
  if (told === 0) return result('confirmed', true, 'acknowledged', 'the tag is dead')
  if (told === undefined) return result('unknown', true, signal.aborted ? 'cancelled' : 'answer_lost', 'the reader did not tell what became of the tag')
  // "No answer" after a kill may be the silence of the dead.
  if (told === 4) return result('unknown', true, 'answer_lost', RESULTS[4])
  return result('failed', true, 'refused', RESULTS[told] ?? `result ${told}`)
}
