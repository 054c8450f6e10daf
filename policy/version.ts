import { z } from 'zod'

/** Header of `/healthz` by which `untag doctor` recognises untag's own programs: `cloud; mqtt=1883` or `agent; id=agt_…`. */
export const PROGRAM_HEADER = 'x-untag'

/** An untag program that answers at a port. */
export interface RunningProgram {
  program: 'cloud' | 'agent'
  /** Port of the cloud's broker. */
  mqttPort?: number
  /** Id of the agent. */
  agentId?: string
}

/** Formats the header. */
export function programHeader({ program, mqttPort, agentId }: RunningProgram): string {
  if (agentId !== undefined) return `${program}; id=${agentId}`
  return mqttPort === undefined ? program : `${program}; mqtt=${mqttPort}`
}

/** Parses the header. Undefined if the header is missing or another program sent it. */
export function readProgramHeader(value: string | null): RunningProgram | undefined {
  const [, program, mqttPort, agentId] =
    /^(cloud|agent)(?:; mqtt=(\d{1,5})|; id=([\w-]{1,64}))?$/.exec(value ?? '') ?? []
  if (program !== 'cloud' && program !== 'agent') return undefined
  return {
    program,
    ...(mqttPort !== undefined && { mqttPort: Number(mqttPort) }),
    ...(agentId !== undefined && { agentId }),
  }
}

/** Release of untag, the same for cloud and agents (package.json). */
export const UNTAG_VERSION = '0.1.0'

/** Oldest release of agents that this cloud supports: the first release of the step before this one. */
export const OLDEST_AGENT = '0.1.0'

/** A release number such as 1.2.3. */
export const VersionNumber = z
  .string()
  .regex(/^(0|[1-9]\d{0,4})\.(0|[1-9]\d{0,4})\.(0|[1-9]\d{0,4})$/, 'a release as 1.2.3')

/** True if `a` is older than `b`. */
export function isOlderVersion(a: string, b: string): boolean {
  const [ours, theirs] = [a.split('.').map(Number), b.split('.').map(Number)]
  for (const [i, n] of ours.entries()) if (n !== theirs[i]) return n < (theirs[i] ?? 0)
  return false
}

/** True if `a` has a lower major or minor number than `b`. Releases with the same two numbers form one step. */
export function isOlderStep(a: string, b: string): boolean {
  const step = (release: string) => `${release.split('.').slice(0, 2).join('.')}.0`
  return isOlderVersion(step(a), step(b))
}
