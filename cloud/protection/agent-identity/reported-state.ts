import { z } from 'zod'
import { AgentState, DEVICE_HEALTH, type ReportedDevice } from '../../../policy/documents/agent-messages.ts'
import { VersionNumber } from '../../../policy/version.ts'

/**
 * State that an agent reports, for display only. The broker delivers the state when the agent connects and
 * disconnects, and when the health of a device changes. The agent also sends the state over HTTP with each document
 * request, at least every 15 s.
 *
 * `devicesAt`: time of the agent's clock at which it observed `devices`. `closedAt`: time at which its connection to the
 * broker ended; absent while it is connected.
 */
const StoredState = AgentState.omit({ online: true })
  .extend({
    release: VersionNumber.optional(),
    devicesAt: z.iso.datetime().optional(),
    closedAt: z.iso.datetime().optional(),
  })
  .strip()
export type StoredAgentState = z.infer<typeof StoredState>

/** Maximum length of a reported state, characters. */
const STATE_LIMIT = 120_000
/**
 * Time after which a report no longer counts, ms: several polls of the agent, and the write of the last contact by
 * another process (`LAST_SEEN_FLUSH_MS`).
 */
const KNOWN_MS = 90_000
/** An agent that closes its connection sends its last packets within this time, ms. */
const CLOSING_MS = 2_000

/** Parses a stored state. Returns undefined if the text is missing or invalid. */
export function stateOf(text: string | null): StoredAgentState | undefined {
  return parsedState(StoredState, text)
}

/** Parses a state by `schema`. Returns undefined if the text is missing, too long or invalid. */
export function parsedState<T>(schema: z.ZodType<T>, text: string | null): T | undefined {
  if (text === null || text.length > STATE_LIMIT) return undefined
  try {
    return schema.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

export const UNKNOWN_HEALTH = ['no_agent', 'agent_offline', 'not_reported'] as const

/** Health of a device, as its agent reported it last. */
export const DeviceHealth = z.strictObject({
  state: z
    .enum([...DEVICE_HEALTH, 'unknown'])
    .describe(
      '`degraded`: it answers, but a person must change something. `absent`: it does not answer its agent. `unknown`: see `unknownBecause`.',
    ),
  unknownBecause: z
    .enum(UNKNOWN_HEALTH)
    .optional()
    .describe(
      'Why the state is unknown. `agent_offline`: the cloud does not hear from the agent. `not_reported`: the agent has no such device.',
    ),
  detail: z.string().optional().describe('What the agent says about it: the fault, or the model of a ready device.'),
  since: z.string().optional().describe('Time since which it is ready, is not ready, or is unknown.'),
})
export type DeviceHealth = z.infer<typeof DeviceHealth>

/** An agent that was not revoked, as the health of its devices needs it. */
export interface ReportingAgent {
  readonly state: StoredAgentState | undefined
  /** Last contact, ms since 1970. */
  readonly lastSeenMs: number
}

/** Health of the device of this agent; undefined: the device has no agent. */
export function deviceHealth(deviceId: string, agent: ReportingAgent | undefined, nowMs: number): DeviceHealth {
  if (!agent) return { state: 'unknown', unknownBecause: 'no_agent' }
  const { state } = agent
  if (!isHeard(agent.lastSeenMs, state?.closedAt, nowMs))
    return {
      state: 'unknown',
      unknownBecause: 'agent_offline',
      ...(agent.lastSeenMs > 0 && { since: new Date(agent.lastSeenMs).toISOString() }),
    }
  const reported = state?.devices?.find((device) => device.deviceId === deviceId)
  if (!reported) return { state: 'unknown', unknownBecause: 'not_reported' }
  const { detail, since } = reported
  return { state: healthOf(reported), ...(detail !== undefined && { detail }), ...(since !== undefined && { since }) }
}

/** True if the agent contacted the cloud recently, and after the end of its connection to the broker. */
function isHeard(lastSeenMs: number, closedAt: string | undefined, nowMs: number): boolean {
  if (nowMs - lastSeenMs > KNOWN_MS) return false
  return closedAt === undefined || lastSeenMs > Date.parse(closedAt) + CLOSING_MS
}

/** Older agents report further states, in all of which the device does not work. */
export function healthOf({ state }: Pick<ReportedDevice, 'state'>): (typeof DEVICE_HEALTH)[number] {
  return DEVICE_HEALTH.find((health) => health === state) ?? 'absent'
}
