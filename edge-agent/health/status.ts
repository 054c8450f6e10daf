import type { DoorState } from '../../device-drivers/drivers/device.ts'
import type { DeviceStatus } from '../../device-drivers/keep-device.ts'
import type { PolicyStage } from '../../policy/store-policy.ts'
import type { ClockTrust } from '../../policy/trusted-clock.ts'

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
  clock: ClockTrust
  /** Trusted time, ISO. */
  now: string
  isHome: boolean
  /** The replica of the store's items: how many names it holds, and how old it is; null: never complete. */
  items: { known: number; ageSeconds: number | null }
  devices: (DeviceStatus & { name: string | null; deviceType: string | null; door?: DoorState | null })[]
  /** Why nothing may move, or null. */
  fault: string | null
}
