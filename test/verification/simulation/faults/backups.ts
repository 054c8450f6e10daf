import type { Database as Connection } from 'better-sqlite3'
import type { AgentNode } from '../nodes/agent-node.ts'
import type { AnswerOracle } from '../oracles/answer-oracle.ts'
import type { CloudNode } from '../nodes/cloud-node.ts'
import type { CloudOracle } from '../oracles/cloud-oracle.ts'
import type { Core } from '../virtual/core.ts'
import type { Customers } from '../people/customers.ts'
import type { ReceiptHomeOracle } from '../oracles/receipt-home-oracle.ts'
import { CLOUD, type TillBook } from '../oracles/till-book.ts'
import type { LedgerOracle } from '../oracles/ledger-oracle.ts'
import type { Receiver } from '../nodes/receiver.ts'

/**
 * Backups of the cloud. A restore loses all data that only the cloud received since the backup, so P3 and P5 hold only
 * up to the backup. Agents report their rows again. Until the agents have done that, the restored cloud must not grant
 * a right that an agent used (I9).
 */
export interface Backups {
  /** Makes a backup of the cloud. The returned function restores this backup. */
  make(): () => void
  /** Copies the disk of an agent. The returned function restores this copy. */
  copyAgent(node: AgentNode): () => void
  /** Called when the cloud has granted a token. */
  granted(db: Connection, nonce: string): void
  /** If a restore lost the token, returns the cloud generation that granted it. Otherwise returns undefined. */
  lostWith(nonce: string): number | undefined
  /** Number of restores of the cloud. */
  readonly restores: number
}

export interface BackupsParts {
  core: Core
  cloud: CloudNode
  cloudOracle: CloudOracle
  people: Customers
  answers: AnswerOracle
  receiver: Receiver
  homes: ReceiptHomeOracle
  /** Undefined without the fault `tills`. */
  tills: { readonly book: Pick<TillBook, 'restored'> } | undefined
  ledgers: ReadonlyMap<string, LedgerOracle>
  /** True if the cloud's clock has faults in this run, so that I9 is not checked. */
  isClockWrong: boolean
}

/** Time that a restored cloud waits for its agents, less a reserve for clock differences, ms (ADR restored-cloud). */
const RESYNC_MS = 10 * 60_000

/** Creates the backups of a run. Calls `parts` only when needed, because some parts are created later. */
export function backups(parts: () => BackupsParts): Backups {
  let restores = 0
  let restoredMs: number | undefined
  const lost = new Map<string, number>()
  return {
    get restores() {
      return restores
    },
    make() {
      const { cloud, cloudOracle, people } = parts()
      const copy = cloud.disk.copy()
      const [forget, forgetPeople] = [cloudOracle.backUp(), people.backUp()]
      return () => {
        const { core, answers, receiver, homes } = parts()
        restores++
        restoredMs = core.scheduler.nowMs
        cloud.restore(copy)
        for (const nonce of cloudOracle.tokenEnds.keys()) if (!lost.has(nonce)) lost.set(nonce, cloud.generation)
        people.excuseLostEvents(forget())
        forgetPeople()
        answers.forget()
        receiver.forget()
        homes.forgetEpochs()
        parts().tills?.book.restored(CLOUD)
      }
    },
    copyAgent(node) {
      const copy = node.disk.copy()
      const head = parts().ledgers.get(node.name)?.rows.at(-1)?.seq ?? 0
      const forget = parts().people.backUpReportedEvents()
      return () => {
        const { homes, ledgers } = parts()
        const ran = node.restore(copy)
        forget()
        ledgers.get(node.name)?.ledgerRestored(head, ran)
        homes.ledgerRestored(node.name)
        parts().tills?.book.restored(node.name)
      }
    },
    lostWith: (nonce) => lost.get(nonce),
    granted(db, nonce) {
      if (restoredMs === undefined) return
      const { core, homes, isClockWrong } = parts()
      if (isClockWrong || core.scheduler.nowMs - restoredMs > RESYNC_MS) return
      const rights = db
        .prepare<[string], { cti: string; right_class: string; receipt_index: number; operator_id: string | null }>(
          `SELECT p.cti, a.right_class, u.receipt_index, a.operator_id FROM protection_authorization a JOIN authorization_unit au ON au.nonce = a.nonce
           JOIN purchase_unit u ON u.line_id = au.line_id AND u.unit_no = au.unit_no JOIN purchase p ON p.purchase_id = u.purchase_id WHERE a.nonce = ? AND p.cti IS NOT NULL`,
        )
        .all(nonce)
      for (const { cti, right_class: rightClass, receipt_index: ordinal, operator_id: operatorId } of rights) {
        const right = `${cti}/${rightClass}/${ordinal}`
        if (homes.isUsed(right, restoredMs, operatorId !== null))
          core.violate('I9', `the restored cloud grants ${nonce} for the right ${right}, which an agent had used`)
      }
    },
  }
}
