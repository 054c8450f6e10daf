import type { AgentStatus } from './agent-status.ts'

/** Below this free space, bytes, the ledger may be unable to store a claim. */
const LEAST_FREE_BYTES = 1_048_576

/** Why the agent cannot decide: the part that does not work, and what to do. */
export interface UnreadyCheck {
  readonly check: 'ledger' | 'disk' | 'policy'
  readonly reason: string
}

const DISK_FULL = 'free space on the disk of the data folder: nothing is released until there is room'

/**
 * Lists what keeps the agent from deciding; empty if it is ready. `isFull`: the last transaction of the ledger failed
 * because the disk is full. `freeBytes`: free space of its disk; undefined if it is unknown.
 */
export function unreadyChecks(
  { fault, policyVersion }: Pick<AgentStatus, 'fault' | 'policyVersion'>,
  isFull: boolean,
  freeBytes: number | undefined,
): UnreadyCheck[] {
  const checks: UnreadyCheck[] = []
  if (fault !== null) checks.push({ check: 'ledger', reason: fault })
  if (freeBytes !== undefined && freeBytes < LEAST_FREE_BYTES)
    checks.push({ check: 'disk', reason: `${Math.floor(freeBytes / 1_024)} KiB are free: ${DISK_FULL}` })
  else if (isFull) checks.push({ check: 'disk', reason: `the disk is full: ${DISK_FULL}` })
  if (policyVersion === null)
    checks.push({ check: 'policy', reason: 'the agent has no policy yet: it gets one as soon as it reaches the cloud' })
  return checks
}
