import { assert } from '../../policy/assert.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { keyRing, type KeyRecord, type KeyRing, type KeyUse, type Signer } from '../../policy/documents/keys.ts'
import { signDocument } from '../../policy/documents/signed-document.ts'
import { contentHash, type KeySetClaims } from '../../policy/documents/store-documents.ts'
import type { Platform, Randomness } from '../../policy/platform.ts'
import type { Tenant } from '../foundation/caller.ts'
import type { Database, Db } from '../persistence/database.ts'
import { recentlyUsed } from '../foundation/recently-used.ts'
import type { KeyFiles } from './key-files.ts'
import { sealer, type Sealer } from './sealing.ts'
import { noteSigned, readLastSigned } from './last-signed.ts'
import { signingClock, type SigningClock } from './signing-clock.ts'
import { assertKnownRoot } from './known-root.ts'
import { raiseKeyGeneration, readKeyGeneration, readKeyMarks, type KeyMarks } from './key-generation.ts'
import { advanceKeys, rotateKey, type Rotation } from './rotate-key.ts'
import { makeMissingKeys, readSigningKeys, type KeyMaker, type SigningKey } from './signing-keys.ts'

/**
 *   root (file) ──signs──▶ key set of a tenant ──names──▶ token, receipt (the tenant's) · policy, freshness (everybody's)
 *
 * What the cloud signs with. Keys are held in memory once a tenant has been made ready, and read again when any process has changed one.
 */
export interface Authority {
  readonly clock: SigningClock
  readonly sealer: Sealer
  /** The root's public key. */
  readonly rootX: string
  /** RFC 7638, 32 bytes. */
  readonly rootThumbprint: Uint8Array
  /** Signs policies and freshness for every store. */
  readonly policySigner: Signer
  readonly freshnessSigner: Signer
  /** How signed times count: raised when a key that signs them was revoked; 0: none was. */
  readonly timeEpoch: number
  /** The epoch of the versions of policies: raised when a key that signs them was revoked. */
  readonly documentEpoch: number
  /** 1, and after a restore from a backup its time; `restoredMs` is 0 while there was none. */
  readonly cloudGeneration: number
  readonly restoredMs: number
  /** Looks whether keys were changed, by whatever process; answers the number of the last change. */
  look(): Promise<number>
  /** Retires and follows up keys whose time has come, and signs key sets anew that would end. */
  advance(db: Db): Promise<void>
  /** Changes a key that signs, or takes one back; counts once the transaction is durable. */
  rotate(db: Db, rotation: Rotation): Promise<string>
  /** Loads the tenant's keys as they stand now, making them and the key set when they are new. */
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
  /** Every receipt key that was not revoked: a receipt may be read long after its key has retired. */
  readonly reading: KeyRing
  readonly records: readonly KeyRecord[]
  /** In which epoch the key set counts time. */
  readonly timeEpoch: number
  readonly keySet: { readonly epoch: number; readonly ver: number; readonly hash: string; readonly jws: string }
  /** Makes receipt identities out of purchases. */
  readonly receiptSecret: Uint8Array
}

/** The issuer of the keys that serve every tenant. */
export const INSTALLATION = 'installation'
const KEY_SET_LIFE = 400 * 86_400
const RENEW_BEFORE = 60 * 86_400
const RENEWED_AT_ONCE = 100
/** Processes of one cloud differ by less: a key set further ahead was signed while a clock was, and no agent takes it until that time comes, s. */
const AHEAD = 60
const RETIRED_SHOWN_MS = 30 * 86_400_000
const REVOKED_SHOWN_MS = KEY_SET_LIFE * 1_000

/** The keys of the installation, as this process last saw them. */
interface Shared {
  marks: KeyMarks
  lastSignedMs: number
  own: readonly SigningKey[]
  policy: Signer
  freshness: Signer
}

/** Tenants whose keys are in memory; those not used for longest are loaded again. */
const TENANTS_LIMIT = 10_000

/** Throws when these keys are not the database's own. Nothing is made, and nothing counts as signed. */
export async function assertOwnKeys(db: Db, files: KeyFiles, random: Randomness): Promise<void> {
  await assertKnownRoot(db, files.root.signer.kid)
  await readSigningKeys(db, INSTALLATION, sealer(files.sealingKeys, random))
}

/** Opens what the cloud signs with; makes the keys of the installation on the first start. */
export async function openAuthority(database: Database, files: KeyFiles, platform: Platform): Promise<Authority> {
  const seal = sealer(files.sealingKeys, platform.random)
  // Whoever put the cloud back trusted the clock: what was signed last may be older than that.
  const { restoredMs } = await readKeyMarks(database.reads)
  const clock = signingClock(platform.clock, Math.max((await readLastSigned(database.reads)) ?? 0, restoredMs))
  const keys = recentlyUsed<Tenant, { generation: number; keys: TenantKeys }>(TENANTS_LIMIT)
  const nowMs = () => platform.clock.wall()

  const maker = (): KeyMaker => ({ sealer: seal, random: platform.random, nowMs: nowMs() })

  async function loadShared(db: Db): Promise<Shared> {
    await makeMissingKeys(db, INSTALLATION, ['policy', 'freshness'], maker())
    const own = await readSigningKeys(db, INSTALLATION, seal)
    return {
      marks: await readKeyMarks(db),
      lastSignedMs: (await readLastSigned(db)) ?? 0,
      own,
      policy: activeSigner(own, 'policy'),
      freshness: activeSigner(own, 'freshness'),
    }
  }
  let shared = await database.write(async (db) => {
    await assertKnownRoot(db, files.root.signer.kid)
    return loadShared(db)
  })
  // From here on things are signed: a start with a clock from before must show, also when this process ends in a minute.
  if (clock.doubt() === null) await database.write((db) => noteSigned(db, nowMs()))

  async function load(db: Db, tenant: Tenant): Promise<{ shared: Shared; keys: TenantKeys }> {
    const common = await loadShared(db)
    await makeMissingKeys(db, tenant, ['token', 'receipt'], maker())
    const own = await readSigningKeys(db, tenant, seal)
    const records = [...common.own, ...own]
      .filter((key) => isPublished(key, clock.noLaterMs()))
      .map((key) => key.record)
    const readable = own.filter(({ record }) => record.use === 'receipt' && record.state !== 'revoked')
    const loaded: TenantKeys = {
      token: activeSigner(own, 'token'),
      receipt: activeSigner(own, 'receipt'),
      ring: keyRing(records),
      reading: keyRing(readable.map(({ record }) => ({ ...record, state: 'retiring' }))),
      records,
      timeEpoch: common.marks.timeEpoch,
      keySet: await currentKeySet(db, tenant, records, common.marks),
      receiptSecret: await tenantSecret(db, `receipt-identity/${tenant}`),
    }
    return { shared: common, keys: loaded }
  }

  /** These keys from now on. In a new time epoch what was signed before says nothing of the time. */
  function use(loaded: Shared): void {
    if (loaded.marks.timeEpoch > shared.marks.timeEpoch) clock.begin(loaded.lastSignedMs)
    shared = loaded
  }

  /** What was loaded last counts, unless meanwhile somebody has seen more. */
  function remember(loaded: { shared: Shared; keys: TenantKeys }, tenant: Tenant): TenantKeys {
    const { generation } = loaded.shared.marks
    if (generation >= shared.marks.generation) use(loaded.shared)
    const known = keys.get(tenant)
    if (known && known.generation > generation) return known.keys
    keys.set(tenant, { generation, keys: loaded.keys })
    return loaded.keys
  }

  /** The signed key set: the kept one while it says the same and lives long enough, else the next version. */
  async function currentKeySet(
    db: Db,
    tenant: Tenant,
    records: KeyRecord[],
    { keySetEpoch, timeEpoch }: KeyMarks,
  ): Promise<TenantKeys['keySet']> {
    const kept = await db
      .selectFrom('signed_document')
      .selectAll()
      .where('kind', '=', 'keys')
      .where('aud', '=', tenant)
      .executeTakeFirst()
    const iat = Math.floor(clock.noLaterMs() / 1_000)
    const content = {
      aud: tenant,
      epoch: Math.max(kept?.epoch ?? 0, keySetEpoch),
      ver: kept?.ver ?? 1,
      ...(timeEpoch > 0 && { timeEpoch }),
      keys: records,
    }
    const isSame = kept?.hash === contentHash({ ...content, iat: 0, exp: 0 })
    const isOfTheFuture = kept !== undefined && kept.iat - iat > AHEAD && clock.doubt() === null
    if (kept && isSame && !isOfTheFuture && iat - kept.iat < KEY_SET_LIFE - RENEW_BEFORE) return kept
    const next = { ...content, ver: kept ? kept.ver + 1 : 1 }
    const { aud, ...said } = next
    const claims: KeySetClaims = { aud, iat, exp: iat + KEY_SET_LIFE, ...said }
    const row = {
      epoch: next.epoch,
      ver: next.ver,
      hash: contentHash(claims),
      jws: signDocument(DOCUMENT_KINDS.keys, claims, files.root.signer),
      iat,
    }
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
    await db
      .insertInto('sealed_secret')
      .values({ name, sealed: seal.seal(secret, name) })
      .execute()
    return secret
  }

  return {
    clock,
    sealer: seal,
    rootX: files.root.x,
    rootThumbprint: files.root.thumbprint,
    get policySigner() {
      return shared.policy
    },
    get freshnessSigner() {
      return shared.freshness
    },
    get timeEpoch() {
      return shared.marks.timeEpoch
    },
    get documentEpoch() {
      return shared.marks.documentEpoch
    },
    get cloudGeneration() {
      return shared.marks.cloudGeneration
    },
    get restoredMs() {
      return shared.marks.restoredMs
    },
    async look() {
      if ((await readKeyGeneration(database.reads)) !== shared.marks.generation) use(await database.write(loadShared))
      return shared.marks.generation
    },
    async advance(db) {
      await advanceKeys(db, maker())
      const now = Math.floor(nowMs() / 1_000)
      const due = await db
        .selectFrom('signed_document')
        .select('aud')
        .where('kind', '=', 'keys')
        .where((eb) => eb.or([eb('iat', '<=', now - KEY_SET_LIFE + RENEW_BEFORE), eb('iat', '>', now + AHEAD)]))
        .limit(RENEWED_AT_ONCE)
        .execute()
      for (const { aud } of due) await load(db, aud as Tenant)
      if (due.length > 0) await raiseKeyGeneration(db)
    },
    rotate: (db, rotation) => rotateKey(db, rotation, maker()),
    async ready(tenant) {
      const known = keys.get(tenant)
      if (known && known.generation === (await readKeyGeneration(database.reads))) return known.keys
      // A transaction of its own: keys must be durable before anything is signed with them.
      return remember(await database.write((db) => load(db, tenant)), tenant)
    },
    // Not remembered: what this transaction may have made is not durable yet.
    readyWithin: async (db, tenant) => keys.get(tenant)?.keys ?? (await load(db, tenant)).keys,
    keysOf(tenant) {
      const known = keys.get(tenant)
      assert(known, `the keys of ${tenant} were not made ready`)
      return known.keys
    },
    noteSigned,
  }
}

function activeSigner(keys: readonly SigningKey[], use: KeyUse): Signer {
  const key = keys.find((k) => k.record.use === use && k.record.state === 'active')
  assert(key?.signer, `there is no active ${use} key`)
  return key.signer
}

/** Keys that are refused anyway leave the key set in the end, so that it does not grow for ever. */
function isPublished({ record, changedMs }: SigningKey, nowMs: number): boolean {
  const goneAfterMs =
    record.state === 'retired'
      ? RETIRED_SHOWN_MS
      : record.state === 'revoked'
        ? REVOKED_SHOWN_MS
        : Number.POSITIVE_INFINITY
  return nowMs - changedMs < goneAfterMs
}
