import type { DoorState, Finding } from '../../device-drivers/kit/device.ts'
import type { DeviceStatus } from '../../device-drivers/device-connection.ts'
import type { PolicyStage } from '../../policy/store-policy.ts'
import { UNTAG_VERSION } from '../../policy/version.ts'
import type { ClockTrust } from '../../policy/trusted-clock.ts'
import type { Replica } from '../items/replica.ts'
import type { Doors } from '../devices/release-watch.ts'
import type { EmergencyState } from '../devices/emergency.ts'
import { withoutTagReader, type Wiring } from '../devices/wiring.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { AgentClock } from '../trust/time/clock.ts'
import type { Identity } from '../identity/identity.ts'
import { untrustedReason, type UntrustedReason } from '../trust/revocation/untrusted-ledger.ts'
import { requiredRelease } from '../trust/verify/open-claims.ts'
import type { Trust } from '../trust/trust.ts'
import { refusedDevice, type RegistrationFault } from './registration.ts'

/** A configured device. `state`: state of the hardware, or the reason why the agent refuses requests for the device. */
export type ConfiguredDevice = Omit<DeviceStatus, 'state'> & { state: DeviceStatus['state'] | RegistrationFault }

/** Status of the agent, for its pages and its local API. */
export interface AgentStatus {
  agentId: string
  storeId: string
  /** Name in the accepted policy; null before the first policy. */
  storeName: string | null
  online: boolean
  /** ISO time; null while online. */
  offlineSince: string | null
  broker: boolean
  /** Number of journal rows that the cloud has not acknowledged. */
  queueDepth: number
  policyVersion: number | null
  stage: PolicyStage
  /** True if tokens name newer documents that the agent lacks, or if denials are missing. */
  isOvertaken: boolean
  /** Release of this agent. */
  release: string
  /** Release that the newest policy of the store requires; null if this release suffices. */
  neededRelease: string | null
  clock: ClockTrust
  /** ISO time of the trusted clock. */
  now: string
  isHome: boolean
  /** Reason why each release needs the cloud; null while the ledger is trusted. */
  ledgerDoubt: UntrustedReason | null
  /**
   * The agent's copy of the store's items: number of names and age. The age is null until the copy has been complete
   * once.
   */
  items: { known: number; ageSeconds: number | null }
  devices: (ConfiguredDevice & {
    name: string | null
    deviceType: string | null
    feeds: string | null
    door?: DoorState | null
  })[]
  /** State of the current emergency; null while no emergency input is active. */
  emergency: {
    /** ISO time of the wall clock. */
    since: string
    inputs: string[]
    lost: string[]
    opened: string[]
    silent: boolean
  } | null
  /** Reason why the agent moves no device, or null. */
  fault: string | null
  /** True if changes of the set-up page wait for a restart of the agent. */
  isRestartDue: boolean
}

/** Sources of the status. */
interface StatusSources {
  identity: Identity
  clock: AgentClock
  trust: Trust
  items: Pick<Replica, 'size' | 'confirmedMs'>
  link: { readonly isOnline: boolean; readonly offlineSinceMs: number | null; readonly hasBroker: boolean }
  ledger: Ledger
  doors: Doors
  emergency: EmergencyState | null
  wiring: Pick<Wiring, 'laneOf' | 'readsTags'>
  fault: string | null
  isRestartDue: boolean
  devices: readonly DeviceStatus[]
  /** The finding of a lane that has too many tags. */
  crowdOf(laneId: string): Finding | undefined
}

/** Returns the current status of the agent. */
export function agentStatus({
  identity,
  clock,
  trust,
  items,
  link,
  ledger,
  doors,
  emergency,
  wiring,
  fault,
  isRestartDue,
  devices,
  crowdOf,
}: StatusSources): AgentStatus {
  const { nowMs: now, trust: clockTrust } = clock.now()
  return {
    agentId: identity.agentId,
    storeId: identity.storeId,
    storeName: trust.policy?.storeName ?? null,
    online: link.isOnline,
    offlineSince: link.offlineSinceMs === null ? null : new Date(link.offlineSinceMs).toISOString(),
    broker: link.hasBroker,
    queueDepth: ledger.journal.waiting,
    policyVersion: trust.policy?.ver ?? null,
    stage: trust.stage(),
    isOvertaken: trust.isOutdated,
    release: UNTAG_VERSION,
    neededRelease: requiredRelease(ledger) ?? null,
    clock: clockTrust,
    now: new Date(now).toISOString(),
    isHome: trust.policy?.policy.home === identity.agentId,
    ledgerDoubt: untrustedReason(ledger, now) ?? null,
    items: {
      known: items.size,
      ageSeconds: items.confirmedMs === 0 ? null : Math.max(0, Math.round((now - items.confirmedMs) / 1_000)),
    },
    devices: devices.map((device) => {
      const known = trust.policy?.devices.find((d) => d.deviceId === device.deviceId)
      const lane = wiring.laneOf(device.deviceId)
      return {
        ...configuredDevice(device, { identity, trust, wiring, crowdOf }),
        name: known?.name ?? null,
        deviceType: known?.deviceType ?? null,
        feeds: lane === device.deviceId ? null : lane,
        door: doors.stateOf(device.deviceId) ?? null,
      }
    }),
    emergency: emergencyStatus(emergency),
    fault,
    isRestartDue,
  }
}

function emergencyStatus(state: EmergencyState | null): AgentStatus['emergency'] {
  if (!state) return null
  const { sinceMs, ...rest } = state
  return { since: new Date(sinceMs).toISOString(), ...rest }
}

/**
 * Returns the state of a device. A registration fault replaces the state of the hardware, because the agent refuses
 * each request for the device.
 */
export function configuredDevice(
  status: DeviceStatus,
  { identity, trust, wiring, crowdOf }: Pick<StatusSources, 'identity' | 'trust' | 'wiring' | 'crowdOf'>,
): ConfiguredDevice {
  // A scanner or reader that serves a lane needs no registration, and the lane shows its tags.
  if (wiring.laneOf(status.deviceId) !== status.deviceId) return status
  const type = trust.policy?.devices.find(({ deviceId }) => deviceId === status.deviceId)?.deviceType
  const ofLane = [crowdOf(status.deviceId), withoutTagReader(wiring, status.deviceId, type)]
  const findings = [...status.findings, ...ofLane.filter((finding) => finding !== undefined)]
  const device = { ...status, findings }
  if (!trust.policy) return device
  return { ...device, ...refusedDevice(trust.policy, identity.agentId, device.deviceId) }
}

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
