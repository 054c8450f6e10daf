import type { AgentErrorCode } from '../edge-agent/http/error-codes.ts'
import { UntagError } from './error.ts'

/** The code of the agent, or of the client itself if no usable answer came. */
export type AgentFaultCode = AgentErrorCode | keyof typeof CLIENT_FIXES

/** What to do about the errors of the client itself. */
const CLIENT_FIXES = {
  network: 'Check that the agent runs and that baseUrl is its address.',
  timeout: 'Look at the device before you send the request again: it may have moved.',
  'bad-answer': 'Check that baseUrl is the address of an agent, without a path.',
} as const

/** A request that the agent refused, or that got no answer. */
export class AgentError extends UntagError {
  override name = 'AgentError'
  declare readonly code: AgentFaultCode
  declare readonly fix: string

  constructor(error: UntagError) {
    // An error without a fix is none of an agent: a proxy in between answered.
    const own = error.code in CLIENT_FIXES ? (error.code as keyof typeof CLIENT_FIXES) : 'bad-answer'
    const fields = error.fix === undefined ? { code: own, fix: CLIENT_FIXES[own] } : {}
    super(error.message, { ...error, ...fields }, { cause: error.cause })
  }
}

/** Any error of a call as the caller gets it: an `AgentError`, or the reason of its signal. */
export function asAgentError(error: unknown): unknown {
  return error instanceof UntagError && !(error instanceof AgentError) ? new AgentError(error) : error
}
