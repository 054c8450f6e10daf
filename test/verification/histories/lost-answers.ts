import type { Client } from './client.ts'
import type { Cluster } from './cluster.ts'
import { historyOf, type ObjectHistory, type Step } from './history.ts'
import { BALANCE } from './models/shop.ts'
import type { Scene } from './scene.ts'

/** Number of COMMITs whose answer is lost. */
export const LOST_ANSWERS = 4

/**
 * Spends points at the process with the lossy wire, while that process loses the answers to its COMMITs. The process
 * must report that the outcome is unknown, and must not execute the request again.
 */
export async function spendWithLostAnswers(
  client: Client,
  cluster: Cluster,
  { programId }: Scene,
): Promise<ObjectHistory> {
  const userId = 'verlierer'
  const steps: Step[] = [
    await client.callOnce('addLoyaltyPoints', { programId, userId, amount: 100, transactionId: 'bon-verlierer' }),
  ]
  for (let n = 0; n < LOST_ANSWERS; n++) {
    const spend = client.call('redeemLoyaltyPoints', { programId, userId, amount: 1 }, { process: cluster.size - 1 })
    const [step] = await Promise.all([spend, cluster.loseCommit()])
    steps.push(step)
  }
  steps.push(await client.callOnce('getLoyaltyProgram', { programId, userId }))
  return historyOf('points that were spent without an answer', steps, BALANCE)
}
