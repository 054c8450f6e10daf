import type { Actuators } from '../nodes/actuators.ts'
import type { AgentNode } from '../nodes/agent-node.ts'
import type { CloudNode } from '../nodes/cloud-node.ts'
import type { AnswerOracle } from '../oracles/answer-oracle.ts'
import type { Backups } from './backups.ts'
import type { AgentCopies } from './agent-copies.ts'
import type { Core } from '../virtual/core.ts'
import type { Shop } from '../nodes/initial-shop.ts'
import type { Emergencies } from '../nodes/emergencies.ts'
import type { DeviceMoves } from './device-moves.ts'
import type { ReEnrolments } from './re-enrolments.ts'
import type { Lan } from '../virtual/lan.ts'
import type { LyingAgent } from './lying-agent.ts'
import type { Merchant } from '../nodes/merchant.ts'
import type { Provider } from '../nodes/provider.ts'
import type { Receiver } from '../nodes/receiver.ts'
import type { Tills } from '../people/tills.ts'
import type { Restarts } from '../nodes/restarts.ts'
import type { Wire } from '../virtual/wire.ts'

/** The parts of a run that faults change. */
export interface FaultTargets {
  core: Core
  cloud: CloudNode
  agents: readonly AgentNode[]
  shopWire: Wire
  lan: Lan
  /** API client of the shop's manager. */
  manager: Merchant
  shop: Shop
  actuators: Actuators
  receiver: Receiver
  /** Undefined in a sandbox. */
  provider: Provider | undefined
  enrolments: ReEnrolments
  copies: AgentCopies
  moves: DeviceMoves | undefined
  liar: LyingAgent | undefined
  /** Undefined without the fault `emergency`. */
  emergencies: Emergencies | undefined
  /** Undefined without the fault `tills`. */
  tills: Tills | undefined
  backups: Backups
  /** The recorded answers of the cloud. */
  answers: AnswerOracle
  /** Restarts ended processes. */
  restarts: Restarts
}
