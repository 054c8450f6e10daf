import { assert } from '../../policy/assert.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { keyRing, type KeyRecord, type KeyRing, type KeyUse, type Signer } from '../../policy/documents/keys.ts'
import { signDocument } from '../../policy/documents/signed-document.ts'
import { contentHash, type KeySetClaims } from '../../policy/documents/store-documents.ts'
import type { Platform } from '../../policy/platform.ts'
import type { Tenant } from '../operations/caller.ts'
import type { Database, Db } from '../persistence/database.ts'
import type { KeyFiles } from './key-files.ts'
import { sealer, type Sealer } from './sealing.ts'
import { signingClock, type SigningClock } from './signing-clock.ts'
import { makeMissingKeys, readSigningKeys, type SigningKey } from './signing-keys.ts'

/**
 *   root (file) ──signs──▶ key set of a tenant ──names──▶ token, receipt (the tenant's) · policy, freshness (everybody's)
 *
 * What the cloud signs with. Keys are held in memory once a tenant has been made ready.
 */
export interface Authority {
  readonly clock: SigningClock
  readonly sealer: Sealer
  /** The root's public key. */
  readonly rootX: string
  /** Signs policies and freshness for every store. */
  readonly policySigner: Signer
  readonly freshnessSigner: Signer
  /** Loads the tenant's keys, making them and the key set when they are new. */
  ready(tenant: Tenant): Promise<TenantKeys>
  /** The tenant's keys as this transaction sees them, for callers that no tenant was made ready for. */
  readyWithin(db: Db, tenant: Tenant): Promise<TenantKeys>
  /** The tenant's keys; it must be ready. */
  keysOf(tenant: Tenant): TenantKeys
  /** Remembers that a time was signed, so that a restart with a clock behind it is noticed. */
  noteSigned(db: Db, ms: number): Promise<void>
}

export interface TenantKeys {
  readonly token: Signer
  readonly receipt: Signer
  /** Everything that documents of this tenant may be signed with. */
  readonly ring: KeyRing
  readonly records: readonly KeyRecord[]
  readonly keySet: { readonly epoch: number; readonly ver: number; readonly hash: string; readonly jws: string }
  /** Makes receipt identities out of purchases. */
  readonly receiptSecret: Uint8Array
}

/** The issuer of the keys that serve every tenant. */
const INSTALLATION = 'installation'
const KEY_SET_LIFE = 400 * 86_400
const RENEW_BEFORE = 60 * 86_400

/** Opens what the cloud signs with; makes the keys of the installation on the first start. */
export async function openAuthority(database: Database, files: KeyFiles, platform: Platform): Promise<Authority> {
  const seal = sealer(files.sealingKeys, platform.random)
  const clock = signingClock(platform.clock, await readLastSigned(database.reads))
  const keys = new Map<Tenant, TenantKeys>()
  const nowMs = () => platform.clock.wall()

  await database.write((db) => makeMissingKeys(db, INSTALLATION, ['policy', 'freshness'], seal, platform.random, nowMs()))
  const shared = await readSigningKeys(database.reads, INSTALLATION, seal)

  async function load(db: Db, tenant: Tenant): Promise<TenantKeys> {
    await makeMissingKeys(db, tenant, ['token', 'receipt'], seal, platform.random, nowMs())
    const own = await readSigningKeys(db, tenant, seal)
    const records = [...shared, ...own].map((k) => k.record)
    return {
      token: activeSigner(own, 'token'),
      receipt: activeSigner(own, 'receipt'),
      ring: keyRing(records),
      records,
      keySet: await currentKeySet(db, tenant, records),
      receiptSecret: await tenantSecret(db, `receipt-identity/${tenant}`),
    }
  }

  /** The signed key set: the kept one while it says the same and lives long enough, else the next version. */
  async function currentKeySet(db: Db, tenant: Tenant, records: KeyRecord[]): Promise<TenantKeys['keySet']> {
    const kept = await db.selectFrom('signed_document').selectAll().where('kind', '=', 'keys').where('aud', '=', tenant).executeTakeFirst()
    const iat = Math.floor(nowMs() / 1_000)
    const content = { aud: tenant, epoch: kept?.epoch ?? 0, ver: kept?.ver ?? 1, keys: records }
    const isSame = kept?.hash === contentHash({ ...content, iat: 0, exp: 0 })
    if (kept && isSame && iat - kept.iat < KEY_SET_LIFE - RENEW_BEFORE) return kept
    const next = { ...content, ver: kept ? kept.ver + 1 : 1 }
    const claims: KeySetClaims = { aud: next.aud, iat, exp: iat + KEY_SET_LIFE, epoch: next.epoch, ver: next.ver, keys: next.keys }
    const row = { epoch: next.epoch, ver: next.ver, hash: contentHash(claims), jws: signDocument(DOCUMENT_KINDS.keys, claims, files.root.signer), iat }
    await db
      .insertInto('signed_document')
      .values({ kind: 'keys', aud: tenant, ...row })
      .onConflict((c) => c.columns(['kind', 'aud']).doUpdateSet(row))
      .execute()
    return row
  }

  async function tenantSecret(db: Db, name: string): Promise<Uint8Array> {
    const kept = await db.selectFrom('sealed_secret').select('sealed').where('name', '=', name).executeTakeFirst()
    if (kept) return seal.open(kept.sealed, name)
    const secret = platform.random.bytes(32)
    await db.insertInto('sealed_secret').values({ name, sealed: seal.seal(secret, name) }).execute()
    return secret
  }

  return {
    clock,
    sealer: seal,
    rootX: files.root.x,
    policySigner: activeSigner(shared, 'policy'),
    freshnessSigner: activeSigner(shared, 'freshness'),
    async ready(tenant) {
      const known = keys.get(tenant)
      if (known) return known
      // A transaction of its own: keys must be durable before anything is signed with them.
      const loaded = await database.write((db) => load(db, tenant))
      keys.set(tenant, loaded)
      return loaded
    },
    // Not remembered: what this transaction may have made is not durable yet.
    readyWithin: (db, tenant) => Promise.resolve(keys.get(tenant) ?? load(db, tenant)),
    keysOf(tenant) {
      const known = keys.get(tenant)
      assert(known, `the keys of ${tenant} were not made ready`)
      return known
    },
    async noteSigned(db, ms) {
      const value = String(ms)
      await db
        .insertInto('installation')
        .values({ name: 'last_signed_ms', value })
        .onConflict((c) => c.column('name').doUpdateSet({ value }))
        .execute()
    },
  }
}

function activeSigner(keys: readonly SigningKey[], use: KeyUse): Signer {
  const key = keys.find((k) => k.record.use === use && k.record.state === 'active')
  assert(key, `there is no active ${use} key`)
  return key.signer
}

async function readLastSigned(db: Db): Promise<number> {
  const row = await db.selectFrom('installation').select('value').where('name', '=', 'last_signed_ms').executeTakeFirst()
  return row ? Number(row.value) : 0
}
