import type { AgentErrorCode } from '../../edge-agent/http/error-codes.ts'
import { UntagError } from './error.ts'

/** Error code of the agent, or of the client if no usable response arrived. */
export type AgentFaultCode = AgentErrorCode | keyof typeof CLIENT_FIXES

/** Fixes for errors of the client itself. */
const CLIENT_FIXES = {
  network: 'Check that the agent runs and that baseUrl is its address.',
  timeout: 'Look at the device before you send the request again: it may have moved.',
  'bad-answer': 'Check that baseUrl is the address of an agent, without a path.',
} as const

/** A request that the agent rejected or did not answer. */
export class AgentError extends UntagError {
  override name = 'AgentError'
  declare readonly code: AgentFaultCode
  declare readonly fix: string

  constructor(error: UntagError) {
    // Agents always send a fix. An error without a fix comes from a proxy or from this client.
    const own = error.code in CLIENT_FIXES ? (error.code as keyof typeof CLIENT_FIXES) : 'bad-answer'
    const fields = error.fix === undefined ? { code: own, fix: CLIENT_FIXES[own] } : {}
    super(error.message, { ...error, ...fields }, { cause: error.cause })
  }
}

/** Converts an `UntagError` to an `AgentError`. Returns any other error unchanged, such as the reason of a signal. */
export function asAgentError(error: unknown): unknown {
  return error instanceof UntagError && !(error instanceof AgentError) ? new AgentError(error) : error
}
