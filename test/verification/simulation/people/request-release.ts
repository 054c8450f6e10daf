import { DENY_REASONS, drivesOutput } from '../../../../policy/vocabulary.ts'
import type { AuthorizeAnswer, AuthorizeRequest } from '../../../../edge-agent/decisions/request.ts'
import type { AgentNode } from '../nodes/agent-node.ts'
import type { Core } from '../virtual/core.ts'
import type { RulesOracle } from '../oracles/rules-oracle.ts'

/** Requests a release from an agent. If the agent is down or dies meanwhile, resolves to undefined. */
export type RequestRelease = (
  node: AgentNode | undefined,
  request: AuthorizeRequest,
) => Promise<AuthorizeAnswer | undefined>

/** Allowed fields of an answer to a device (ADR staff). */
const ANSWER_FIELDS = new Set([
  'authorized',
  'action',
  'expiresAt',
  'itemCount',
  'remaining',
  'eventId',
  'reason',
  'offline',
  'outcome',
  'itemStatus',
  'statusAgeSeconds',
  'unknownFacts',
])
const REASONS: ReadonlySet<string> = new Set(DENY_REASONS)

/** State of the simulation that customers cannot see. */
export interface HiddenState {
  /** Number of restores of the cloud. */
  restores(): number
  /** The agent that a device was moved to. */
  holderOf(deviceId: string): AgentNode | undefined
  /** The agent that customers reach: this agent or its copy. */
  nodeMet(node: AgentNode | undefined): AgentNode | undefined
}

const NOTHING: HiddenState = { restores: () => 0, holderOf: () => undefined, nodeMet: (node) => node }

/**
 * Creates the function that requests releases and checks the answers. It passes the event id of each answer to
 * `onEventId`, because the cloud must receive this event. It does not pass the id if the cloud was restored meanwhile,
 * or if a copy of the agent answered.
 */
export function releaseRequester(
  core: Core,
  onEventId: (eventId: string) => void,
  { restores, holderOf, nodeMet }: HiddenState = NOTHING,
  rules?: Pick<RulesOracle, 'answered' | 'statusesAt'>,
): RequestRelease {
  const { trace } = core

  function checkAnswer(node: AgentNode, answer: AuthorizeAnswer, isSame: boolean): void {
    trace.add(
      node.name,
      `${answer.action}: ${answer.authorized ? `yes, ${answer.outcome}` : `no, ${answer.reason}`}${answer.offline ? ' (offline)' : ''}`,
    )
    const unknown = Object.keys(answer).filter((field) => !ANSWER_FIELDS.has(field))
    if (unknown.length > 0) core.violate('I14', `${node.name} sends a device the fields ${unknown.join(', ')}`)
    if (answer.reason !== undefined && !REASONS.has(answer.reason))
      core.violate('I14', `${node.name} uses the unknown reason ${answer.reason}`)
    if (answer.authorized && drivesOutput(answer.action) && answer.outcome === null)
      core.violate('I2', `${node.name} authorizes ${answer.action} without an outcome`)
    if (answer.eventId !== null && isSame) onEventId(answer.eventId)
  }

  return (usual, request) => {
    const wanted = holderOf(request.deviceId) ?? usual
    const node = nodeMet(wanted)
    const agent = node?.agent
    const { process } = node?.machine ?? {}
    if (!node || !agent || process?.isAlive !== true) return Promise.resolve(undefined)
    const before = restores()
    const decidedBy = agent.trust.policy
    const statuses = () => rules?.statusesAt(request, (epc) => agent.items.find('epc', epc)?.status) ?? []
    const known = statuses()
    return new Promise((resolve) => {
      const forget = process.onEnd(() => resolve(undefined))
      agent.lanes.request(request).then(
        (answer) => {
          forget()
          if (!process.isAlive) return resolve(undefined)
          checkAnswer(node, answer, restores() === before && node === wanted)
          // The check is skipped if the policy changed during the request.
          if (decidedBy && agent.trust.policy === decidedBy)
            rules?.answered(request, answer, { ...decidedBy, statuses: [known, statuses()] })
          resolve(answer)
        },
        (error: unknown) => {
          forget()
          const { name } = error as Error
          trace.add(node.name, `cannot decide: ${name}`)
          // An error of the ledger is a planned fault: the disk fails or is full.
          if (process.isAlive && !name.startsWith('Ledger'))
            core.violate('fault', `${node.name} could not decide: ${String(error)}`)
          resolve(undefined)
        },
      )
    })
  }
}
