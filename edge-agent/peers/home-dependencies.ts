import type { Signer } from '../../policy/documents/keys.ts'
import type { Platform } from '../../policy/platform.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Fetch } from '../link/wire/http-client.ts'
import type { AgentClock } from '../trust/time/clock.ts'
import type { Trust } from '../trust/trust.ts'

/** The parts of this agent that the home classes use. */
export interface HomeDependencies {
  platform: Platform
  agentId: string
  ledger: Ledger
  trust: Trust
  signer(): Signer
  fetch: Fetch
  nowMs(): number
  clock: AgentClock
  /** True if the cloud is online and trusts this ledger. */
  isLedgerTrusted(): boolean
}
