import type { DoorState } from '../../device-drivers/drivers/device.ts'
import type { DeviceStatus } from '../../device-drivers/device-connection.ts'
import type { PolicyStage } from '../../policy/store-policy.ts'
import { UNTAG_VERSION } from '../../policy/version.ts'
import type { ClockTrust } from '../../policy/trusted-clock.ts'
import type { Replica } from '../items/replica.ts'
import type { Doors } from '../devices/doors.ts'
import type { EmergencyState } from '../devices/emergency.ts'
import type { Wiring } from '../devices/wiring.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { AgentClock } from '../trust/time/clock.ts'
import type { Identity } from '../identity/identity.ts'
import { untrustedReason, type UntrustedReason } from '../trust/revocation/untrusted-ledger.ts'
import { requiredRelease } from '../trust/verify/required-release.ts'
import type { Trust } from '../trust/trust.ts'
import { refusedDevice, type RegistrationFault } from './registration.ts'

/** A configured device: the state of its hardware, or why the agent refuses its requests. */
export type ConfiguredDevice = Omit<DeviceStatus, 'state'> & { state: DeviceStatus['state'] | RegistrationFault }

/** The agent as a person at the station should see it. */
export interface AgentStatus {
  agentId: string
  storeId: string
  /** As the accepted policy has it. */
  storeName: string | null
  online: boolean
  /** ISO; null while online. */
  offlineSince: string | null
  broker: boolean
  /** Journal rows that the cloud does not have yet. */
  queueDepth: number
  policyVersion: number | null
  stage: PolicyStage
  /** Tokens name newer documents than those here, and nothing brings them. */
  isOvertaken: boolean
  /** What runs here. */
  release: string
  /** The release that the store's newest policy needs, which this one cannot take; null: this is enough. */
  neededRelease: string | null
  clock: ClockTrust
  /** Trusted time, ISO. */
  now: string
  isHome: boolean
  /** Why each release needs the cloud: the ledger was forked or restored, or the agent revoked. null: the ledger is trusted. */
  ledgerDoubt: UntrustedReason | null
  /** The replica of the store's items: how many names it holds, and how old it is; null: never complete. */
  items: { known: number; ageSeconds: number | null }
  devices: (ConfiguredDevice & { name: string | null; deviceType: string | null; door?: DoorState | null })[]
  /** What an emergency input opens now; null while there is no emergency. */
  emergency: {
    /** ISO, by the wall clock. */
    since: string
    inputs: string[]
    lost: string[]
    opened: string[]
    silent: boolean
  } | null
  /** Why nothing may move, or null. */
  fault: string | null
}

/** Where an agent's status comes from. */
export interface StatusSources {
  identity: Identity
  clock: AgentClock
  trust: Trust
  items: Pick<Replica, 'size' | 'confirmedMs'>
  link: { readonly isOnline: boolean; readonly offlineSinceMs: number | null; readonly hasBroker: boolean }
  ledger: Ledger
  doors: Doors
  emergency: EmergencyState | null
  wiring: Pick<Wiring, 'laneOf'>
  fault: string | null
  devices: readonly DeviceStatus[]
}

/** The agent as it is now. */
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
  devices,
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
      return {
        ...configuredDevice(device, { identity, trust, wiring }),
        name: known?.name ?? null,
        deviceType: known?.deviceType ?? null,
        door: doors.stateOf(device.deviceId) ?? null,
      }
    }),
    emergency: emergencyStatus(emergency),
    fault,
  }
}

function emergencyStatus(state: EmergencyState | null): AgentStatus['emergency'] {
  if (!state) return null
  const { sinceMs, ...rest } = state
  return { since: new Date(sinceMs).toISOString(), ...rest }
}

/** The state of a device. A registration fault hides the state of the hardware: the device is of no use until it is corrected. */
export function configuredDevice(
  device: DeviceStatus,
  { identity, trust, wiring }: Pick<StatusSources, 'identity' | 'trust' | 'wiring'>,
): ConfiguredDevice {
  const isFeeding = wiring.laneOf(device.deviceId) !== device.deviceId
  if (!trust.policy || isFeeding) return device
  return { ...device, ...refusedDevice(trust.policy, identity.agentId, device.deviceId) }
}
