import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Database as Connection } from 'better-sqlite3'
import { hashOfKey } from '../../../../cloud/platform/accounts/api-keys.ts'
import { verifyAudit } from '../../../../cloud/platform/accounts/audit-chain.ts'
import { keysOf, loadKeyFiles } from '../../../../cloud/platform/authority/key-files.ts'
import { sealer } from '../../../../cloud/platform/authority/sealing.ts'
import { openConnection, openSqlite } from '../../../../cloud/platform/persistence/sqlite.ts'
import { realPlatform } from '../../../../host/platform.ts'
import { secretFiles } from '../../../../host/secret-files.ts'
import type { DiskEvent } from './disk-log.ts'
import { answerIn, documentsIn, newTally, type Promises } from './promises.ts'

interface StoredAnswer {
  tenant: string
  operation: string
  key_hash: string
  body: string
}

/** The cloud at the end of the recording: stored answers with a unique text, and the two key files. */
interface Reference {
  kept: ReadonlyMap<string, StoredAnswer>
  root: string
  sealing: Buffer
}

interface Head {
  ver: number
}

/** For every tenth disk, the check includes the audit chains and the foreign keys. */
const FOLLOW_EVERY = 10
/** The check of a disk covers this many of the newest guarantees, and about as many of the older ones. */
const SAMPLE_SIZE = 6
const SINGLE_TOKENS: ReadonlySet<string> = new Set(['pauth+jwt'])

/**
 * Checks the guarantees of the cloud on a disk after a power cut. Stored answers are unchanged (P5), acknowledged
 * events exist (P3), and issued tokens exist. Published versions never decrease, and the key files can still open the
 * sealed values.
 *
 * @param last The cloud's folder at the end of the recording.
 */
export async function cloudPromises(last: string): Promise<Promises> {
  return promisesSince(await readReference(last))
}

function promisesSince(reference: Reference): Promises {
  return new CloudPromises(reference)
}

class CloudPromises implements Promises {
  readonly #kept: Reference['kept']
  readonly #root: Reference['root']
  readonly #sealing: Reference['sealing']
  readonly #count: (kind: string) => void
  readonly counts: Record<string, number>
  readonly #answers: StoredAnswer[] = []
  readonly #nonces: string[] = []
  readonly #keys: string[] = []
  readonly #signedBy = new Set<string>()
  readonly #acked = new Map<string, number>()
  /** Newest published versions by store. */
  readonly #publishedVersions = new Map<string, { policy: number; deny: number; items: number }>()
  #keySet = { tenant: '', ver: 0 }
  #checkedStates = 0
  readonly folder: 'cloud' | 'edge' = 'cloud'

  constructor({ kept, root, sealing }: Reference) {
    this.#kept = kept
    this.#root = root
    this.#sealing = sealing
    const { count, counts } = newTally()
    this.#count = count
    this.counts = counts
  }

  addOutput({ to, text }: Extract<DiskEvent, { kind: 'output' }>): void {
    if (to === 'standard output' && text.startsWith('{"key"')) {
      this.#count('an API key')
      this.#keys.push((JSON.parse(text) as { key: string }).key)
    }
    const body = answerIn(text)
    const answer = body === undefined ? undefined : this.#kept.get(Buffer.from(body, 'latin1').toString())
    if (answer) {
      this.#count('an answer')
      this.#answers.push(answer)
    }
    for (const { typ, kid, claims } of documentsIn(text)) this.#addDocument(typ, kid, claims)
  }

  async check(folder: string): Promise<string[]> {
    try {
      const hasPromised = this.#answers.length > 0 || this.#keys.length > 0
      if (!existsSync(join(folder, 'cloud.db'))) return hasPromised ? ['the database is gone'] : []
      return await this.#open(folder)
    } catch (error) {
      return [`the cloud does not start: ${String(error)}`]
    }
  }

  #addDocument(typ: string, kid: string, claims: Record<string, unknown>): void {
    if (typ !== 'keys+jwt') this.#signedBy.add(kid)
    if (SINGLE_TOKENS.has(typ) && typeof claims['jti'] === 'string') {
      this.#count('a token')
      this.#nonces.push(claims['jti'])
    }
    if (typ === 'ack+jwt') {
      this.#count('events acknowledged')
      const ledger = String(claims['ledger'])
      this.#acked.set(ledger, Math.max(this.#acked.get(ledger) ?? 0, Number(claims['seq'])))
    }
    if (typ === 'fresh+jwt') {
      this.#count('heads')
      const { policy, deny, items, aud } = claims as { policy: Head; deny: Head; items: Head; aud: string }
      const before = this.#publishedVersions.get(aud) ?? { policy: 0, deny: 0, items: 0 }
      this.#publishedVersions.set(aud, {
        policy: Math.max(before.policy, policy.ver),
        deny: Math.max(before.deny, deny.ver),
        items: Math.max(before.items, items.ver),
      })
    }
    if (typ === 'keys+jwt') {
      this.#count('a key set')
      this.#keySet = { tenant: String(claims['aud']), ver: Math.max(this.#keySet.ver, Number(claims['ver'])) }
    }
  }

  #check(db: Connection): string[] {
    const wrong: string[] = []
    const damage = db.pragma('integrity_check', { simple: true })
    if (damage !== 'ok') wrong.push(`the database is damaged: ${String(damage)}`)
    const answer = db
      .prepare<[string, string, string], string>(
        'SELECT body FROM idempotency WHERE tenant = ? AND operation = ? AND key_hash = ?',
      )
      .pluck()
    for (const { tenant, operation, key_hash: hash, body } of someOf(this.#answers)) {
      if (answer.get(tenant, operation, hash) !== body)
        wrong.push(
          `an answer of ${operation} was sent, but ${answer.get(tenant, operation, hash) === undefined ? 'is gone' : 'has changed'}`,
        )
    }
    const token = db.prepare<[string], number>('SELECT COUNT(*) FROM protection_authorization WHERE nonce = ?').pluck()
    for (const nonce of someOf(this.#nonces))
      if (token.get(nonce) !== 1) wrong.push(`the token ${nonce} was issued but is unknown`)
    const apiKey = db.prepare<[string], number>('SELECT COUNT(*) FROM api_key WHERE hash = ?').pluck()
    for (const key of this.#keys)
      if (apiKey.get(hashOfKey(key)) !== 1) wrong.push('an API key was shown but is unknown')
    const signing = db.prepare<[string], number>('SELECT COUNT(*) FROM signing_key WHERE kid = ?').pluck()
    for (const kid of this.#signedBy)
      if (signing.get(kid) !== 1) wrong.push(`the key ${kid} has signed documents but is gone`)
    const agent = db.prepare<[string], number>('SELECT last_seq FROM agent WHERE ledger_id = ?').pluck()
    for (const [ledger, seq] of this.#acked)
      if ((agent.get(ledger) ?? 0) < seq)
        wrong.push(`row ${seq} of ${ledger} was acknowledged, but the last row is ${agent.get(ledger) ?? 'none'}`)
    const rows = db
      .prepare<[string, number], number>('SELECT COUNT(*) FROM journal_row WHERE ledger_id = ? AND seq <= ?')
      .pluck()
    for (const [ledger, seq] of this.#acked)
      if (rows.get(ledger, seq) !== seq)
        wrong.push(`the cloud has ${rows.get(ledger, seq) ?? 0} of ${seq} acknowledged rows of ${ledger}`)
    const store = db.prepare<[string], { policy: number; deny: number; items: number | null }>(
      'SELECT s.document_version AS policy, s.deny_seq AS deny, h.seq AS items FROM store s LEFT JOIN item_head h ON h.store_id = s.store_id WHERE s.store_id = ?',
    )
    for (const [id, versions] of this.#publishedVersions) {
      const now = store.get(id)
      for (const name of ['policy', 'deny', 'items'] as const)
        if ((now?.[name] ?? 0) < versions[name])
          wrong.push(`${name} ${versions[name]} of ${id} was published, but the cloud has ${now?.[name] ?? 'none'}`)
    }
    const set = db.prepare<[string], number>("SELECT ver FROM signed_document WHERE kind = 'keys' AND aud = ?").pluck()
    if (this.#keySet.ver > 0 && (set.get(this.#keySet.tenant) ?? 0) < this.#keySet.ver)
      wrong.push(
        `key set ${this.#keySet.ver} was published, but the cloud has ${set.get(this.#keySet.tenant) ?? 'none'}`,
      )
    return wrong
  }

  /** Checks that root key and sealing key are unchanged, if the database has sealed values. */
  async #checkKeyFiles(folder: string, db: Connection): Promise<string[]> {
    const sealed =
      db
        .prepare<[], number>('SELECT (SELECT COUNT(*) FROM signing_key) + (SELECT COUNT(*) FROM sealed_secret)')
        .pluck()
        .get() ?? 0
    if (sealed === 0 && this.#signedBy.size === 0) return []
    const found = await loadKeyFiles(keysOf(folder), secretFiles, realPlatform().random)
    if (found.root.x !== this.#root) return ['the root key has changed']
    return Buffer.from(found.sealingKeys[0] ?? []).equals(this.#sealing)
      ? []
      : ['the sealing key has changed, so the cloud cannot open sealed values']
  }

  async #open(folder: string): Promise<string[]> {
    const connections: Connection[] = []
    const database = await openSqlite(
      join(folder, 'cloud.db'),
      (failure) => {
        throw failure
      },
      (file, options) => {
        const connection = openConnection(file, options)
        connections.push(connection)
        return connection
      },
    )
    try {
      const [writing] = connections
      if (!writing) return ['nothing was opened']
      const wrong = [...this.#check(writing), ...(await this.#checkKeyFiles(folder, writing))]
      if (this.#checkedStates++ % FOLLOW_EVERY > 0) return wrong
      if ((writing.pragma('foreign_key_check') as unknown[]).length > 0)
        wrong.push('a foreign key refers to a missing row')
      const { chains } = await verifyAudit(database.reads)
      return [
        ...wrong,
        ...chains.flatMap(({ tenant, broken }) =>
          broken ? [`the audit log of ${tenant} is broken: ${broken.why}`] : [],
        ),
      ]
    } finally {
      await database.close()
    }
  }
}

/** Returns the newest entries and an even sample of the older ones. */
function someOf<T>(list: readonly T[]): T[] {
  const older = list.slice(0, -SAMPLE_SIZE)
  const step = Math.max(1, Math.floor(older.length / SAMPLE_SIZE))
  return [...older.filter((_, i) => i % step === 0), ...list.slice(-SAMPLE_SIZE)]
}

async function readReference(folder: string): Promise<Reference> {
  const db = openConnection(join(folder, 'cloud.db'))
  const rows = db
    .prepare<[], StoredAnswer>('SELECT tenant, operation, key_hash, body FROM idempotency WHERE status = 200')
    .all()
  db.close()
  const { random } = realPlatform()
  const { root, sealingKeys } = await loadKeyFiles(keysOf(folder), secretFiles, random)
  const { isCurrent, open } = sealer(sealingKeys, random)
  // In the database, answers with tokens are sealed (cloud/platform/operations/stored-response.ts). The recording has the plain
  // text of these answers.
  const plainText = (body: string) => (isCurrent(body) ? open(body, 'idempotency').toString() : body)
  // Leaves out each answer that two or more requests received, because the check could not distinguish these requests.
  const times = new Map<string, number>()
  for (const { body } of rows) times.set(plainText(body), (times.get(plainText(body)) ?? 0) + 1)
  return {
    kept: new Map(rows.filter((row) => times.get(plainText(row.body)) === 1).map((row) => [plainText(row.body), row])),
    root: root.x,
    sealing: Buffer.from(sealingKeys[0] ?? []),
  }
}
