import { assert } from '../../../policy/assert.ts'
import type { Signer } from '../../../policy/documents/keys.ts'
import type { Platform, Randomness } from '../../../policy/platform.ts'
import type { Tenant } from '../foundation/caller.ts'
import type { Database, Db } from '../persistence/database.ts'
import { lruCache } from '../foundation/shared-slots.ts'
import type { KeyFiles } from './key-files.ts'
import {
  readKeyGeneration,
  readKeyCounters,
  storeLastSigned,
  readLastSigned,
  signingClock,
  type SigningClock,
} from './key-counters.ts'
import { INSTALLATION, KeyLoader, type LoadedKeys, type InstallationKeys, type TenantKeys } from './key-loader.ts'
import { assertKnownRoot, readSigningKeys } from './signing-keys.ts'
import { rotateKey, type Rotation } from './rotate-key.ts'
import { sealer, type Sealer } from './sealing.ts'
import { hkdfSync } from 'node:crypto'

/** Maximum number of tenants in the cache. Above this number, the cache drops the least recently used tenant. */
const TENANTS_LIMIT = 10_000

/** Throws if these keys do not belong to the database. Creates no keys. */
export async function assertOwnKeys(db: Db, files: KeyFiles, random: Randomness): Promise<void> {
  await assertKnownRoot(db, files.root.signer.kid)
  await readSigningKeys(db, INSTALLATION, sealer(files.sealingKeys, random))
}

/** Opens the authority; creates the keys of the installation at the first start. */
export async function openAuthority(database: Database, files: KeyFiles, platform: Platform): Promise<Authority> {
  const seal = sealer(files.sealingKeys, platform.random)
  // The clock must also not be behind the time of the restore, because the backup may contain an older signed time.
  const { restoredMs } = await readKeyCounters(database.reads)
  const clock = signingClock(platform.clock, Math.max((await readLastSigned(database.reads)) ?? 0, restoredMs))
  const loader = new KeyLoader({ sealer: seal, platform, clock, root: files.root.signer })
  const shared = await database.write(async (db) => {
    await assertKnownRoot(db, files.root.signer.kid)
    return loader.loadShared(db)
  })
  // Stores the time before the first signature, so that the next start detects a clock that is behind.
  if (clock.untrustedReason() === null) await database.write((db) => storeLastSigned(db, platform.clock.wall()))
  return new Authority({ database, files, loader, sealer: seal, clock }, shared)
}

interface AuthorityParts {
  database: Database
  files: KeyFiles
  loader: KeyLoader
  sealer: Sealer
  clock: SigningClock
}

/**
 * Signing keys of the cloud. The root key, in a file, signs a key set for each tenant. The key set lists the tenant's
 * keys for tokens and receipts, and the keys of the installation for policies and freshness.
 *
 * Each process caches keys. A process reloads the keys after any process has changed one.
 */
export class Authority {
  readonly clock: SigningClock
  readonly sealer: Sealer
  /** Public root key, base64url. */
  readonly rootX: string
  /** Thumbprint of the root key (RFC 7638), 32 bytes. */
  readonly rootThumbprint: Uint8Array
  /** Stores the latest signed time (ms), so that the cloud detects a slow clock at the next start. */
  readonly storeLastSigned = storeLastSigned
  /** Password of this agent at an outside broker. It changes when `untag reseal` changes the sealing key. */
  readonly brokerPassword: (agentId: string) => string
  readonly #database: Database
  readonly #loader: KeyLoader
  /** Running loads of keys, by tenant. Concurrent requests share one load. */
  readonly #loading = new Map<Tenant, Promise<TenantKeys>>()
  readonly #tenants = lruCache<Tenant, { generation: number; keys: TenantKeys }>(TENANTS_LIMIT)
  #shared: InstallationKeys

  constructor({ database, files, loader, sealer: seal, clock }: AuthorityParts, shared: InstallationKeys) {
    this.clock = clock
    this.sealer = seal
    this.brokerPassword = (agentId) => brokerPassword(files, agentId)
    this.rootX = files.root.x
    this.rootThumbprint = files.root.thumbprint
    this.#database = database
    this.#loader = loader
    this.#shared = shared
  }

  /** Signs the policies of all stores. */
  get policySigner(): Signer {
    return this.#shared.policy
  }

  /** Signs freshness, deny lists, items, acknowledgements and commands for all stores. */
  get freshnessSigner(): Signer {
    return this.#shared.freshness
  }

  /** Epoch of signed times, raised when a key that signs them is revoked; 0 initially. */
  get timeEpoch(): number {
    return this.#shared.counters.timeEpoch
  }

  /** Epoch of policy versions, raised by a restore and when a policy or freshness key is revoked. */
  get documentEpoch(): number {
    return this.#shared.counters.documentEpoch
  }

  /** 1 at first; after a restore, the time of the restore, ms since 1970. `restoredMs` is 0 without a restore. */
  get cloudGeneration(): number {
    return this.#shared.counters.cloudGeneration
  }

  get restoredMs(): number {
    return this.#shared.counters.restoredMs
  }

  /** Reloads keys if any process changed them. Returns the number of the last change. */
  async refresh(): Promise<number> {
    if ((await readKeyGeneration(this.#database.reads)) !== this.#shared.counters.generation)
      this.#use(await this.#database.write((db) => this.#loader.loadShared(db)))
    return this.#shared.counters.generation
  }

  /** Retires and replaces keys that are due, and renews key sets before they expire. */
  advance(db: Db): Promise<void> {
    return this.#loader.advance(db)
  }

  /** Rotates or revokes a signing key. Takes effect with the commit. */
  rotate(db: Db, rotation: Rotation): Promise<string> {
    return rotateKey(db, rotation, this.#loader.maker())
  }

  /** Loads the tenant's keys; creates missing keys and the key set. */
  async ready(tenant: Tenant, generation?: number): Promise<TenantKeys> {
    const needed = generation ?? (await readKeyGeneration(this.#database.reads))
    for (let tries = 0; ; tries++) {
      const known = this.#tenants.get(tenant)
      if (known && known.generation >= needed) return known.keys
      // A load that began before this call may miss the newest change, but a second load cannot.
      assert(tries < 3, `the keys of ${tenant} stay older than change ${needed}`)
      await (this.#loading.get(tenant) ?? this.#load(tenant))
    }
  }

  /** Loads keys in a separate transaction, because they must be durable before they sign. */
  #load(tenant: Tenant): Promise<TenantKeys> {
    const loading = this.#database
      .write((db) => this.#loader.load(db, tenant))
      .then((loaded) => this.#remember(loaded, tenant))
      .finally(() => this.#loading.delete(tenant))
    this.#loading.set(tenant, loading)
    return loading
  }

  // Does not cache loaded keys: this transaction may have created the keys, and the transaction has not committed yet.
  /** Returns the tenant's keys. If they are not cached, loads them within this transaction. */
  async readyWithin(db: Db, tenant: Tenant): Promise<TenantKeys> {
    return this.#tenants.get(tenant)?.keys ?? (await this.#loader.load(db, tenant)).keys
  }

  /** Returns the tenant's cached keys. Call `ready` before. */
  keysOf(tenant: Tenant): TenantKeys {
    const known = this.#tenants.get(tenant)
    assert(known, `the keys of ${tenant} are not cached: call ready() before`)
    return known.keys
  }

  /** Uses these keys from now on. A new time epoch also replaces the clock's latest signed time. */
  #use(loaded: InstallationKeys): void {
    if (loaded.counters.timeEpoch > this.#shared.counters.timeEpoch) this.clock.reset(loaded.lastSignedMs)
    this.#shared = loaded
  }

  /** Caches loaded keys, unless newer ones are cached. */
  #remember(loaded: LoadedKeys, tenant: Tenant): TenantKeys {
    const { generation } = loaded.shared.counters
    if (generation >= this.#shared.counters.generation) this.#use(loaded.shared)
    const known = this.#tenants.get(tenant)
    if (known && known.generation > generation) return known.keys
    this.#tenants.set(tenant, { generation, keys: loaded.keys })
    return loaded.keys
  }
}

const PASSWORD_BYTES = 24

/**
 * Password of an agent at an outside broker. All processes with the same keys derive the same password, so no table
 * holds it.
 */
export function brokerPassword({ sealingKeys: [key] }: Pick<KeyFiles, 'sealingKeys'>, agentId: string): string {
  assert(key, 'broker passwords need a sealing key')
  return Buffer.from(hkdfSync('sha256', key, 'untag/broker-password/1', agentId, PASSWORD_BYTES)).toString('base64url')
}
