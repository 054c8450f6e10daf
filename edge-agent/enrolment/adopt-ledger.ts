import { openLedgerFile } from '../ledger/file/ledger-file.ts'
import { Journal } from '../ledger/journal/journal.ts'
import { LEDGER_ID_KEY } from '../ledger/ledger.ts'
import { openMetadata } from '../ledger/file/metadata.ts'
import type { Identity } from '../identity/identity.ts'

/** Metadata keys that depend on the former cloud. The agent always deletes these keys. */
const CLOUD_METADATA = [
  'deny_seq',
  'last_fresh',
  'last_contact_ms',
  'cloud_generation',
  'cloud_generation_doubted',
  'tokens_since_s',
  'resync_from',
  'resync_until',
  'online_only_until',
  'denials_awaited',
  'restored',
  'revoked',
  'key_since_ms',
  'rotate_key_asked',
]

/**
 * Metadata keys that depend on the root key. The agent deletes these metadata keys if the root key has changed. A thief
 * of the former root key may have revoked good keys or signed a wrong time.
 */
const ROOT_METADATA = ['revoked_kids', 'forgotten_revocations', 'clock']

/**
 * Assigns the ledger to a new identity, in one transaction. Used rights stay used, and all signed documents are
 * discarded.
 *
 * The unacknowledged rows get new numbers and hashes for the new ledger id. After a restore of the cloud, all stored
 * rows get new numbers and hashes. Returns the number of rows that the agent will send.
 */
export function adoptLedger(
  file: string,
  former: Pick<Identity, 'rootX'> | undefined,
  next: Pick<Identity, 'ledgerId' | 'generation' | 'rootX'>,
): number {
  const db = openLedgerFile(file)
  try {
    return db
      .transaction(() => {
        const metadata = openMetadata(db)
        const journal = new Journal(db, metadata, next.ledgerId, next.generation)
        journal.resendAll()
        journal.restart(next.generation)
        const isOtherRoot = former !== undefined && former.rootX !== next.rootX
        for (const name of isOtherRoot ? [...CLOUD_METADATA, ...ROOT_METADATA] : CLOUD_METADATA)
          db.prepare('DELETE FROM mark WHERE name = ?').run(name)
        db.prepare('DELETE FROM document').run()
        metadata.set(LEDGER_ID_KEY, next.ledgerId)
        return journal.head.seq
      })
      .immediate()
  } finally {
    db.close()
  }
}
