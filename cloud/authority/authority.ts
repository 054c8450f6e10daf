import { assert } from '../../policy/assert.ts'
import type { Signer } from '../../policy/documents/keys.ts'
import type { Platform, Randomness } from '../../policy/platform.ts'
import type { Tenant } from '../foundation/caller.ts'
import type { Database, Db } from '../persistence/database.ts'
import { lruCache } from '../foundation/lru-cache.ts'
import type { KeyFiles } from './key-files.ts'
import { readKeyGeneration, readKeyCounters } from './key-counters.ts'
import { INSTALLATION, KeyLoader, type LoadedKeys, type InstallationKeys, type TenantKeys } from './key-loader.ts'
import { assertKnownRoot } from './known-root.ts'
import { storeLastSigned, readLastSigned } from './last-signed.ts'
import { rotateKey, type Rotation } from './rotate-key.ts'
import { sealer, type Sealer } from './sealing.ts'
import { signingClock, type SigningClock } from './signing-clock.ts'
import { readSigningKeys } from './signing-keys.ts'

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
  refresh(): Promise<number>
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
  storeLastSigned(db: Db, ms: number): Promise<void>
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
  const { restoredMs } = await readKeyCounters(database.reads)
  const clock = signingClock(platform.clock, Math.max((await readLastSigned(database.reads)) ?? 0, restoredMs))
  const loader = new KeyLoader({ sealer: seal, platform, clock, root: files.root.signer })
  const shared = await database.write(async (db) => {
    await assertKnownRoot(db, files.root.signer.kid)
    return loader.loadShared(db)
  })
  // From here on things are signed: a start with a clock from before must show, also when this process ends in a minute.
  if (clock.untrustedReason() === null) await database.write((db) => storeLastSigned(db, platform.clock.wall()))
  return new CachedKeys({ database, files, loader, sealer: seal, clock }, shared)
}

interface AuthorityParts {
  database: Database
  files: KeyFiles
  loader: KeyLoader
  sealer: Sealer
  clock: SigningClock
}

/** The keys that this process has in memory. */
class CachedKeys implements Authority {
  readonly clock: SigningClock
  readonly sealer: Sealer
  readonly rootX: string
  readonly rootThumbprint: Uint8Array
  readonly storeLastSigned = storeLastSigned
  readonly #database: Database
  readonly #loader: KeyLoader
  readonly #tenants = lruCache<Tenant, { generation: number; keys: TenantKeys }>(TENANTS_LIMIT)
  #shared: InstallationKeys

  constructor({ database, files, loader, sealer: seal, clock }: AuthorityParts, shared: InstallationKeys) {
    this.clock = clock
    this.sealer = seal
    this.rootX = files.root.x
    this.rootThumbprint = files.root.thumbprint
    this.#database = database
    this.#loader = loader
    this.#shared = shared
  }

  get policySigner(): Signer {
    return this.#shared.policy
  }

  get freshnessSigner(): Signer {
    return this.#shared.freshness
  }

  get timeEpoch(): number {
    return this.#shared.counters.timeEpoch
  }

  get documentEpoch(): number {
    return this.#shared.counters.documentEpoch
  }

  get cloudGeneration(): number {
    return this.#shared.counters.cloudGeneration
  }

  get restoredMs(): number {
    return this.#shared.counters.restoredMs
  }

  async refresh(): Promise<number> {
    if ((await readKeyGeneration(this.#database.reads)) !== this.#shared.counters.generation)
      this.#use(await this.#database.write((db) => this.#loader.loadShared(db)))
    return this.#shared.counters.generation
  }

  advance(db: Db): Promise<void> {
    return this.#loader.advance(db)
  }

  rotate(db: Db, rotation: Rotation): Promise<string> {
    return rotateKey(db, rotation, this.#loader.maker())
  }

  async ready(tenant: Tenant): Promise<TenantKeys> {
    const known = this.#tenants.get(tenant)
    if (known && known.generation === (await readKeyGeneration(this.#database.reads))) return known.keys
    // A transaction of its own: keys must be durable before anything is signed with them.
    return this.#remember(await this.#database.write((db) => this.#loader.load(db, tenant)), tenant)
  }

  // Not remembered: what this transaction may have made is not durable yet.
  async readyWithin(db: Db, tenant: Tenant): Promise<TenantKeys> {
    return this.#tenants.get(tenant)?.keys ?? (await this.#loader.load(db, tenant)).keys
  }

  keysOf(tenant: Tenant): TenantKeys {
    const known = this.#tenants.get(tenant)
    assert(known, `the keys of ${tenant} were not made ready`)
    return known.keys
  }

  /** These keys from now on. In a new time epoch what was signed before says nothing of the time. */
  #use(loaded: InstallationKeys): void {
    if (loaded.counters.timeEpoch > this.#shared.counters.timeEpoch) this.clock.reset(loaded.lastSignedMs)
    this.#shared = loaded
  }

  /** What was loaded last counts, unless meanwhile somebody has seen more. */
  #remember(loaded: LoadedKeys, tenant: Tenant): TenantKeys {
    const { generation } = loaded.shared.counters
    if (generation >= this.#shared.counters.generation) this.#use(loaded.shared)
    const known = this.#tenants.get(tenant)
    if (known && known.generation > generation) return known.keys
    this.#tenants.set(tenant, { generation, keys: loaded.keys })
    return loaded.keys
  }
}
