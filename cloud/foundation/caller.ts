import { Failure } from './failure.ts'
import type { Package } from './packages.ts'

export type Mode = 'test' | 'live'

/** Owner of data: `{accountId}.{mode}`. Test and live data never mix. */
export type Tenant = `${string}.${Mode}`

/** The tenant of an account in one mode. */
export function tenantOf(accountId: string, mode: Mode): Tenant {
  return `${accountId}.${mode}`
}

export interface KeyCaller {
  readonly kind: 'secret' | 'publishable' | 'admin'
  readonly keyId: string
  readonly accountId: string
  readonly mode: Mode
  readonly tenant: Tenant
  /** Stores that the key may access; null: all stores of the tenant. */
  readonly storeIds: readonly string[] | null
  /** The highest package of the account. */
  readonly package: Package
  /** Expiry of the key, ms since 1970; null: none. */
  readonly expiresMs: number | null
  /** Number of the last change of the cloud's signing keys, read together with the caller; undefined for jobs. */
  readonly keyGeneration?: number
}

/** Caller for jobs and for pages of the cloud. The audit log shows `name`. */
export function systemCaller(tenant: Tenant, name: string): KeyCaller {
  const [accountId = '', mode] = tenant.split('.')
  return {
    kind: 'secret',
    keyId: name,
    accountId,
    mode: mode === 'live' ? 'live' : 'test',
    tenant,
    storeIds: null,
    package: 'PRIME',
    expiresMs: null,
  }
}

export interface AgentCaller {
  readonly kind: 'agent'
  readonly agentId: string
  readonly storeId: string
  readonly ledgerId: string
  readonly generation: number
  readonly accountId: string
  readonly mode: Mode
  readonly tenant: Tenant
  readonly package: Package
  /**
   * Number of the last change of the cloud's signing keys, read together with the caller; undefined for messages over
   * MQTT.
   */
  readonly keyGeneration?: number
}

export interface AnonymousCaller {
  readonly kind: 'anyone'
  readonly address: string
}

export type Caller = KeyCaller | AgentCaller | AnonymousCaller

/** A caller with an account. */
export type KnownCaller = KeyCaller | AgentCaller

/** Narrows to a caller with a key or an agent. Throws 401 if the caller is anonymous. */
export function knownCaller(caller: Caller): KnownCaller {
  if (caller.kind === 'anyone')
    throw new Failure('unauthenticated', 'send an API key in the header Authorization: Bearer untag_…')
  return caller
}

/** Narrows to a caller with a key. Throws 401 for other callers. */
export function keyCaller(caller: Caller): KeyCaller {
  const known = knownCaller(caller)
  if (known.kind === 'agent')
    throw new Failure('unauthenticated', 'send an API key in the header Authorization: Bearer untag_…')
  return known
}

/** True if the caller may know that the store exists. */
export function maySee(caller: KnownCaller, store: { store_id: string; tenant: string }): boolean {
  if (store.tenant !== caller.tenant) return false
  if (caller.kind === 'agent') return caller.storeId === store.store_id
  return caller.storeIds === null || caller.storeIds.includes(store.store_id)
}

/** Name of the caller in the audit log. */
export function actorOf(caller: Caller): string {
  if (caller.kind === 'anyone') return 'anyone'
  return caller.kind === 'agent' ? caller.agentId : caller.keyId
}
