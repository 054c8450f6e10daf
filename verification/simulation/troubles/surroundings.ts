import type { Actuators } from '../nodes/actuators.ts'
import type { AgentNode } from '../nodes/agent-node.ts'
import type { CloudNode } from '../nodes/cloud-node.ts'
import type { Copies } from './copies.ts'
import type { Core } from '../virtual/core.ts'
import type { Shop } from '../nodes/genesis.ts'
import type { Emergencies } from '../nodes/emergencies.ts'
import type { DeviceMoves } from './device-moves.ts'
import type { Enrolments } from './enrolments.ts'
import type { Lan } from '../virtual/lan.ts'
import type { Liar } from './liar.ts'
import type { Merchant } from '../nodes/merchant.ts'
import type { Provider } from '../nodes/provider.ts'
import type { Receiver } from '../nodes/receiver.ts'
import type { Wire } from '../virtual/wire.ts'

/** What a world is made of. */
export interface Surroundings {
  core: Core
  cloud: CloudNode
  agents: readonly AgentNode[]
  shopWire: Wire
  lan: Lan
  /** A program of the shop's manager. */
  manager: Merchant
  shop: Shop
  actuators: Actuators
  receiver: Receiver
  /** Of a live shop. */
  provider: Provider | undefined
  enrolments: Enrolments
  copies: Copies
  moves: DeviceMoves | undefined
  liar: Liar | undefined
  /** Of a world with a fire panel. */
  emergencies: Emergencies | undefined
  /** Makes a backup of the cloud; what it answers puts the cloud back to it. */
  backUpCloud(): () => void
  /** Copies the disk of an agent; what it answers puts the agent back to that. */
  copyAgent(agent: AgentNode): () => void
  /** What was answered with tokens is true no longer. */
  onRevoked(): void
  /** Keeps a machine down for so long, ms; it is started again otherwise. */
  keepDown(machine: string, ms: number): void
  /** The cloud's clock is set: what it does by time may come early. */
  onClock(): void
}
