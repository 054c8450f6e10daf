import { Failure } from './failure.ts'
import type { Package } from './packages.ts'

export type Mode = 'test' | 'live'

/** Everything that a caller owns hangs on its tenant: `{accountId}.{mode}`. Test and live never meet. */
export type Tenant = `${string}.${Mode}`

/** The tenant of an account's test or live side. */
export function tenantOf(accountId: string, mode: Mode): Tenant {
  return `${accountId}.${mode}`
}

export interface KeyCaller {
  readonly kind: 'secret' | 'publishable' | 'admin'
  readonly keyId: string
  readonly accountId: string
  readonly mode: Mode
  readonly tenant: Tenant
  /** The only stores that the key may touch; null: all of its tenant. */
  readonly storeIds: readonly string[] | null
  /** The highest package of the account. */
  readonly package: Package
  /** When the key ends, ms since 1970; null: when somebody ends it. */
  readonly expiresMs: number | null
}

/** Who acts where no key does: a job, or the cloud's own page. `name` is what the audit log shows. */
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
}

export interface AnonymousCaller {
  readonly kind: 'anyone'
  readonly address: string
}

export type Caller = KeyCaller | AgentCaller | AnonymousCaller

/** A caller that belongs to an account. */
export type KnownCaller = KeyCaller | AgentCaller

/** The caller, when it has a key or is an agent. Throws unauthenticated. */
export function knownCaller(caller: Caller): KnownCaller {
  if (caller.kind === 'anyone')
    throw new Failure('unauthenticated', 'an API key is needed: Authorization: Bearer untag_…')
  return caller
}

/** The caller, when it has a key. Throws unauthenticated. */
export function keyCaller(caller: Caller): KeyCaller {
  const known = knownCaller(caller)
  if (known.kind === 'agent')
    throw new Failure('unauthenticated', 'an API key is needed: Authorization: Bearer untag_…')
  return known
}

/** Whether the caller may know that a store exists. */
export function maySee(caller: KnownCaller, store: { store_id: string; tenant: string }): boolean {
  if (store.tenant !== caller.tenant) return false
  if (caller.kind === 'agent') return caller.storeId === store.store_id
  return caller.storeIds === null || caller.storeIds.includes(store.store_id)
}

/** Who did it, for the audit log. */
export function actorOf(caller: Caller): string {
  if (caller.kind === 'anyone') return 'anyone'
  return caller.kind === 'agent' ? caller.agentId : caller.keyId
}
