import { first, parameter } from '../../../device-drivers/llrp/protocol/elements.ts'
import type { AnyParameter, Parameter } from '../../../device-drivers/llrp/protocol/elements.ts'
import { EAS_WORD, TID_WORDS } from '../../../device-drivers/llrp/protocol/eas-chips.ts'
import type { ReaderState } from './reader-state.ts'

/** Memory of a simulated tag besides its EPC. */
export interface SimulatedTag {
  /** 8 hex digits; a tag without a kill password cannot be killed. */
  readonly killPassword?: string
  /** 8 hex digits; without an access password every client may write. */
  readonly accessPassword?: string
  /** The first two words of the TID, 8 hex digits. */
  readonly tid?: string
  /** Configuration word whose lowest bit is the EAS bit, if the chip has one. */
  config?: number
  /** True if the tag executes writes, but all its answers are lost. */
  readonly mutters?: boolean
}

const words = (hex: string): number[] => (hex.match(/.{4}/g) ?? []).map((word) => Number.parseInt(word, 16))
const OVERRUN = 1
const LOCKED = 2
const NO_SUCH_MEMORY = 1
const UNHEARD = 5

function read(tag: SimulatedTag, bank: number, word: number): number[] | undefined {
  if (bank === TID_WORDS.bank && word === TID_WORDS.word) return tag.tid === undefined ? undefined : words(tag.tid)
  return bank === EAS_WORD.bank && word === EAS_WORD.word && tag.config !== undefined ? [tag.config] : undefined
}

function write(tag: SimulatedTag, bank: number, word: number, data: readonly number[], password: number): number {
  if (bank !== EAS_WORD.bank || word !== EAS_WORD.word || tag.config === undefined) return OVERRUN
  if (tag.accessPassword !== undefined && Number.parseInt(tag.accessPassword, 16) !== password) return LOCKED
  // Each 1 bit in the data toggles the bit at the same position of the configuration word.
  tag.config ^= data[0] ?? 0
  return tag.mutters ? UNHEARD : 0
}

function kill({ killPassword }: SimulatedTag, password: number): number {
  if (killPassword === undefined) return 1
  return Number.parseInt(killPassword, 16) === password ? 0 : 3
}

/** Executes the AccessSpec for this EPC once. Returns null if there is no such AccessSpec. */
export function operateOn(
  state: ReaderState,
  epc: string,
  tag: SimulatedTag,
): { readonly results: readonly AnyParameter[]; readonly isDead: boolean } | null {
  for (const [id, { spec, isEnabled }] of state.accessSpecs) {
    const command = first(spec, 'AccessCommand')
    const target = first(first(command, 'C1G2TagSpec'), 'C1G2TargetTag')
    if (!isEnabled || target?.fields.TagData.hex !== epc) continue
    state.accessSpecs.delete(id)
    const results: AnyParameter[] = []
    let isDead = false
    for (const { name, fields } of (command?.params ?? []).filter((param) => param.name !== 'unknown')) {
      if (name === 'C1G2Read') {
        const data = read(tag, fields.MB, fields.WordPointer)?.slice(0, fields.WordCount)
        results.push(
          parameter('C1G2ReadOpSpecResult', {
            Result: data ? 0 : NO_SUCH_MEMORY,
            OpSpecID: fields.OpSpecID,
            ReadData: data ?? [],
          }),
        )
      } else if (name === 'C1G2Write') {
        const Result = write(tag, fields.MB, fields.WordPointer, fields.WriteData, fields.AccessPassword)
        results.push(
          parameter('C1G2WriteOpSpecResult', {
            Result,
            OpSpecID: fields.OpSpecID,
            NumWordsWritten: Result === 0 ? fields.WriteData.length : 0,
          }),
        )
      } else if (name === 'C1G2Kill') {
        const Result = kill(tag, fields.KillPassword)
        isDead ||= Result === 0
        results.push(parameter('C1G2KillOpSpecResult', { Result, OpSpecID: fields.OpSpecID }))
      }
    }
    return { results, isDead }
  }
  return null
}

/** An enabled AccessSpec that another program has left: reads two words of the TID of each tag. */
export function foreignAccessSpec(): { spec: Parameter<'AccessSpec'>; isEnabled: boolean } {
  const nothing = { count: 0, hex: '' }
  const target = { MB: 1, Match: true, Pointer: 32, TagMask: nothing, TagData: nothing }
  const spec = parameter(
    'AccessSpec',
    { AccessSpecID: 77, AntennaID: 0, ProtocolID: 1, CurrentState: true, ROSpecID: 0 },
    parameter('AccessSpecStopTrigger', { AccessSpecStopTrigger: 0, OperationCountValue: 0 }),
    parameter(
      'AccessCommand',
      {},
      parameter('C1G2TagSpec', {}, parameter('C1G2TargetTag', target)),
      parameter('C1G2Read', { OpSpecID: 1, AccessPassword: 0, MB: 2, WordPointer: 0, WordCount: 2 }),
    ),
  )
  return { spec, isEnabled: true }
}
