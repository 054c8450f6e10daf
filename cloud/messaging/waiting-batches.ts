import { shares, type Shares } from '../foundation/shares.ts'

/** Maximum number of batches of one agent that wait to be stored. */
export const BATCHES_OF_AGENT = 4
/** Maximum number of batches of all agents of an account that wait to be stored. */
export const BATCHES_OF_ACCOUNT = 250
/** Maximum number of batches of all agents that wait to be stored. A batch has up to 300 KB. */
export const BATCHES_OF_ALL = 500

/** Counts the batches of events that wait to be stored. The agent sends a batch that does not fit again after 5 s. */
export interface WaitingBatches {
  readonly ofAgent: Shares
  /** The cloud knows the account only after it has looked up the agent. */
  readonly ofAccount: Shares
}

/** Empty shares of the batches that wait: for each agent and for each account. */
export function waitingBatches(): WaitingBatches {
  return {
    ofAgent: shares({ ofOne: BATCHES_OF_AGENT, total: BATCHES_OF_ALL }),
    ofAccount: shares({ ofOne: BATCHES_OF_ACCOUNT, total: BATCHES_OF_ALL }),
  }
}
