import { Failure, invalid } from './failure.ts'

/** DISCOVER < ASSIST < GO < GROW < PRIME */
export const PACKAGES = ['DISCOVER', 'ASSIST', 'GO', 'GROW', 'PRIME'] as const
export type Package = (typeof PACKAGES)[number]

/** True if package `have` includes package `need`. */
export function isAtLeast(have: Package, need: Package): boolean {
  return PACKAGES.indexOf(have) >= PACKAGES.indexOf(need)
}

/** Roles of an account's users, highest first. A role may do everything that a lower role may do. */
export const ROLES = ['owner', 'admin', 'manager', 'associate', 'viewer'] as const
export type Role = (typeof ROLES)[number]

/** Role of the people who run the cloud. They belong to `PLATFORM_ACCOUNT`, and have no right in any other account. */
export const PLATFORM_ROLE = 'platform'
export type UserRole = Role | typeof PLATFORM_ROLE
/** For what every signed-in person may do: the own profile, password and second factor. */
export const EVERY_ROLE: readonly UserRole[] = [...ROLES, PLATFORM_ROLE]

/** Id of the account of the people who run the cloud. It has no store, no key and no users of another role. */
export const PLATFORM_ACCOUNT = 'platform'

/** This role and all higher roles. */
export function rolesFrom(lowest: Role): readonly Role[] {
  return ROLES.slice(0, ROLES.indexOf(lowest) + 1)
}

/** True if `role` is as high as `other`, or higher. No role is as high as that of the platform, also not this one. */
export function isRoleAtLeast(role: UserRole, other: UserRole): boolean {
  return other !== PLATFORM_ROLE && rolesFrom(other).some((each) => each === role)
}

/**
 * True if the user has one of these roles. Before the second factor, the people who run the cloud have only the rights
 * that everybody has.
 */
export function hasRole(
  { role, hasSecondFactor }: Pick<UserCaller, 'role' | 'hasSecondFactor'>,
  roles: readonly UserRole[],
): boolean {
  if (role === PLATFORM_ROLE && !hasSecondFactor) return EVERY_ROLE.every((each) => roles.includes(each))
  return roles.includes(role)
}

export type Mode = 'test' | 'live'

/** Owner of data: `{accountId}.{mode}`. Test and live data never mix. */
export type Tenant = `${string}.${Mode}`

/** The tenant of an account in one mode. */
export function tenantOf(accountId: string, mode: Mode): Tenant {
  return `${accountId}.${mode}`
}

/** The account that a tenant belongs to. */
export function accountOf(tenant: string): string {
  return tenant.split('.')[0] ?? ''
}

/** A caller with rights in an account. */
export interface AccountCaller {
  /** Id of the key or of the user, for the audit log. */
  readonly keyId: string
  readonly accountId: string
  readonly mode: Mode
  readonly tenant: Tenant
  /** Stores that the caller may access; null: all stores of the tenant. */
  readonly storeIds: readonly string[] | null
  /** The highest package of the account. */
  readonly package: Package
  /** Number of the last change of the cloud's signing keys, read together with the caller; undefined for jobs. */
  readonly keyGeneration?: number
}

export interface KeyCaller extends AccountCaller {
  readonly kind: 'secret' | 'publishable' | 'admin'
  /** Client address of a request with a publishable key, which all shoppers have. */
  readonly address?: string
}

/** A person who has signed in. `keyId` is the id of the user. */
export interface UserCaller extends AccountCaller {
  readonly kind: 'user'
  readonly role: UserRole
  readonly sessionId: string
  /** True if the user confirmed the sign-in with a passkey or a code. */
  readonly hasSecondFactor: boolean
  /** False if the user may see sandbox data only. */
  readonly mayUseLive: boolean
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

export type Caller = KeyCaller | UserCaller | AgentCaller | AnonymousCaller

/** A caller with an account. */
export type KnownCaller = KeyCaller | UserCaller | AgentCaller

/** Narrows to a caller with an account. Throws 401 if the caller is anonymous. */
export function knownCaller(caller: Caller): KnownCaller {
  if (caller.kind === 'anyone')
    throw new Failure('unauthenticated', 'send an API key in the header Authorization: Bearer untag_…')
  return caller
}

/** Narrows to a key or a user. Throws 401 for other callers. */
export function keyCaller(caller: Caller): KeyCaller | UserCaller {
  const known = knownCaller(caller)
  if (known.kind === 'agent')
    throw new Failure('unauthenticated', 'send an API key in the header Authorization: Bearer untag_…')
  return known
}

/** Narrows to a user. Throws 401 for other callers. */
export function userCaller(caller: Caller): UserCaller {
  if (caller.kind !== 'user') throw new Failure('unauthenticated', 'sign in first: signIn returns a session token')
  return caller
}

/** True if the caller decides about all accounts: an admin key, or a person who runs the cloud. */
export function isOfPlatform(caller: Caller): boolean {
  return caller.kind === 'admin' || (caller.kind === 'user' && caller.role === PLATFORM_ROLE)
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

/** Who acted: the person whom the request names, else the user who calls. Throws 400 if a key names nobody. */
export function staffOf(caller: Caller, operatorId: string | undefined): string {
  if (operatorId !== undefined) return operatorId
  if (caller.kind === 'user') return caller.keyId
  throw invalid('operatorId', 'is required: name who decided; only signed-in users may omit it', 'missing')
}
