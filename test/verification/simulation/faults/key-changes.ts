import { INSTALLATION } from '../../../../cloud/platform/authority/key-loader.ts'
import { ROTATED_USES } from '../../../../cloud/platform/authority/rotate-key.ts'
import { LedgerFailure, LedgerFull } from '../../../../edge-agent/ledger/file/commit.ts'
import { ROTATION_REQUESTED } from '../../../../edge-agent/link/login/renew-key.ts'
import type { AgentNode } from '../nodes/agent-node.ts'
import type { Chance } from '../virtual/chance.ts'
import { isDiskFault } from '../virtual/disk.ts'
import type { FaultTargets } from './fault-targets.ts'

/** Key changes by the operator, as `untag keys rotate`, `untag keys revoke` and `untag edge rotate-key` make them. */
export interface KeyChanges {
  /** Rotates a signing key of the cloud, or revokes it at once. */
  rotateSigningKey(): void
  /** Requests a key change from an agent. */
  rotateAgentKey(): void
  /** Called at each backup of the cloud. */
  backedUp(): void
}

/**
 * Maximum number of key changes per agent since the last backup. An agent stores its last three keys, and a restored
 * cloud must accept one of them.
 */
const CHANGES_PER_BACKUP = 2

/** Creates the key changes of a run. If a signing key is revoked, stored answers with tokens become invalid. */
export function keyChanges(
  { core, cloud, agents, answers }: Pick<FaultTargets, 'core' | 'cloud' | 'agents' | 'answers'>,
  chance: Chance,
): KeyChanges {
  /** Key changes by agent since the last backup; undefined before the first backup. */
  let changes: Map<AgentNode, number> | undefined
  return {
    backedUp: () => void (changes = new Map()),
    rotateSigningKey() {
      const { running } = cloud
      const tenant = agents[0]?.identity.tenant
      if (!running || tenant === undefined) return
      const use = chance.one(ROTATED_USES)
      const revoke = chance.happens(0.3)
      core.trace.add('fault', `the key for ${use} is ${revoke ? 'revoked' : 'changed'}`)
      const { services } = running.cloud
      const iss = use === 'token' || use === 'receipt' ? tenant : INSTALLATION
      running.database
        .write((db) => services.authority.rotate(db, { iss, use, revoke }))
        .then(
          () => {
            if (running.process.isAlive) services.agents.keysChanged()
          },
          (error: unknown) => {
            if (running.process.isAlive && !isDiskFault(error))
              core.violate('fault', `a key was not changed: ${(error as Error).stack}`)
          },
        )
      if (revoke) answers.forget()
    },
    rotateAgentKey() {
      const node = chance.one(agents)
      const before = changes?.get(node) ?? 0
      if (!node.agent || before >= CHANGES_PER_BACKUP) return
      changes?.set(node, before + 1)
      core.trace.add('fault', `${node.name} receives the command to change its key`)
      const { commits, metadata } = node.agent.ledger
      try {
        commits.now(() => metadata.set(ROTATION_REQUESTED, '1'))
      } catch (error) {
        if (!(error instanceof LedgerFull) && !(error instanceof LedgerFailure)) throw error
      }
    },
  }
}
