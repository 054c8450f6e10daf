import { all, message } from './protocol/elements.ts'
import type { LlrpConversation } from './conversation.ts'

// Values of GET_READER_CONFIG and GPIPortCurrentState (LLRP 1.0.1, 13.2.1 and 13.2.5.7).
const GPI_STATE = 9
const LOW = 0
const HIGH = 1

/** Reads the level of an input; null if the reader does not answer or does not report the level. */
export async function readInputLevel(
  conversation: LlrpConversation,
  input: number,
  timeoutMs: number,
): Promise<boolean | null> {
  const answer = await conversation.request(
    'GET_READER_CONFIG_RESPONSE',
    (id) =>
      message('GET_READER_CONFIG', id, { AntennaID: 0, RequestedData: GPI_STATE, GPIPortNum: input, GPOPortNum: 0 }),
    { timeoutMs },
  )
  if (answer.kind !== 'answered') return null
  const state = all(answer.message, 'GPIPortCurrentState').find(({ fields }) => fields.GPIPortNum === input)?.fields
  return state?.State === HIGH ? true : state?.State === LOW ? false : null
}
