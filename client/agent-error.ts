import type { AgentErrorCode } from '../edge-agent/http/error-codes.ts'
import { UntagError } from './error.ts'

/** The code of the agent, or of the client itself if no usable answer came. */
export type AgentFaultCode = AgentErrorCode | keyof typeof OWN_FIXES

/** What to do about the errors of the client itself. */
const OWN_FIXES = {
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
    const own = error.code in OWN_FIXES ? (error.code as keyof typeof OWN_FIXES) : 'bad-answer'
    const said = error.fix === undefined ? { code: own, fix: OWN_FIXES[own] } : {}
    super(error.message, { ...error, ...said }, { cause: error.cause })
  }
}

/** Any error of a call as the caller gets it: an `AgentError`, or the reason of its signal. */
export function asAgentError(error: unknown): unknown {
  return error instanceof UntagError && !(error instanceof AgentError) ? new AgentError(error) : error
}
