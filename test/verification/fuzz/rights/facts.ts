import type { Chance } from '../../simulation/virtual/chance.ts'
import type { AgentIdentity } from '../scene/agent-login.ts'

/**
 * The oracle's own table of who may do what now, after docs/guides/users.md and the reference of the API. It calls no
 * code of the product.
 */

export const ROLES = ['viewer', 'associate', 'manager', 'admin', 'owner'] as const
const PACKAGES = ['DISCOVER', 'ASSIST', 'GO', 'GROW', 'PRIME'] as const
export const MODES = ['test', 'live'] as const
export type Role = (typeof ROLES)[number]
export type Package = (typeof PACKAGES)[number]
export type Mode = (typeof MODES)[number]

export interface Store {
  readonly label: string
  readonly storeId: string
  readonly account: Account
  readonly mode: Mode
  /** A word that all texts about this store contain. */
  readonly word: string
  package: Package
  productId: string
}

export interface Account {
  readonly label: string
  readonly name: string
  readonly accountId: string
  /** A word in the addresses of its users. */
  readonly word: string
  /** A secret key that stays valid. */
  readonly rootKeys: Readonly<Record<Mode, string>>
  readonly stores: Store[]
}

export interface User {
  readonly label: string
  readonly userId: string
  readonly account: Account
  readonly email: string
  role: Role
  /** Null: all stores of the account. */
  stores: readonly Store[] | null
  isSandboxOnly: boolean
  /** True if the person has accepted an invitation. */
  hasAccepted: boolean
  /** True if the person has signed in at the provider. */
  isLinked: boolean
  /** Undefined: the user has none. */
  password: string | undefined
  totp: string | undefined
  isGone: boolean
}

export interface Session {
  readonly label: string
  readonly kind: 'user'
  readonly user: User
  readonly token: string
  mode: Mode
  hasFactor: boolean
  isOpen: boolean
  /** The secret of an authenticator app that this session has begun to add. */
  begun?: { readonly secret: string; readonly untilMs: number } | undefined
}

export interface Key {
  readonly label: string
  readonly kind: 'secret' | 'publishable'
  readonly account: Account
  readonly mode: Mode
  readonly stores: readonly Store[] | null
  readonly token: string
  readonly keyId: string
  isOpen: boolean
}

export interface StoreAgent {
  readonly label: string
  readonly kind: 'agent'
  readonly store: Store
  readonly identity: AgentIdentity
  token: string
  tokenMs: number
  isOpen: boolean
}

/** A session of a person who runs the cloud. Such a person belongs to no merchant. */
export interface PlatformSession {
  readonly label: string
  readonly userId: string
  readonly token: string
  /** Without a second factor, only the own profile opens. */
  readonly hasFactor: boolean
  isOpen: boolean
}

export type Holder = Session | Key | StoreAgent

/** Wrong guesses of a period of 15 minutes, which begins with the first one. */
export interface Guesses {
  sinceMs: number
  count: number
}

export interface Link {
  readonly label: string
  readonly token: string
  readonly user: User
  /** Undefined: the command line, which has all rights. */
  inviter: User | undefined
  isOpen: boolean
}

export interface Rights {
  readonly kind: Holder['kind']
  readonly account: Account
  readonly mode: Mode
  readonly role: Role | undefined
  readonly stores: readonly Store[] | null
}

export const isAtLeast = (role: Role, needed: Role) => ROLES.indexOf(role) >= ROLES.indexOf(needed)
const hasPackage = (have: Package, needed: Package) => PACKAGES.indexOf(have) >= PACKAGES.indexOf(needed)

/** Owners see live data only with a second factor. */
export const mayUseLive = ({ user, hasFactor }: Session) => !user.isSandboxOnly && (user.role !== 'owner' || hasFactor)

/** The present rights of a caller; undefined if they have ended. */
export function rightsOf(holder: Holder): Rights | undefined {
  if (!holder.isOpen) return undefined
  if (holder.kind === 'agent') {
    const { store } = holder
    return { kind: 'agent', account: store.account, mode: store.mode, role: undefined, stores: [store] }
  }
  if (holder.kind !== 'user') return { ...holder, role: undefined }
  const { account, role, stores } = holder.user
  return { kind: 'user', account, role, stores, mode: mayUseLive(holder) ? holder.mode : 'test' }
}

/** True if the caller sees the store. */
export const sees = ({ account, mode, stores }: Rights, store: Store) =>
  store.account === account && store.mode === mode && (stores?.includes(store) ?? true)

/** True if the stores `wanted` are among the stores `own`. */
export const covers = (own: User['stores'], wanted: User['stores']) =>
  own === null || (wanted !== null && wanted.every((store) => own.includes(store)))

/** Something that a caller does, and who may do it. */
export interface Doing {
  readonly operation: string
  /** Lowest role of users; undefined: no user. */
  readonly lowest: Role | undefined
  readonly kinds: readonly Exclude<Holder['kind'], 'user'>[]
  readonly package: Package
  /** True if the package does not matter in the sandbox. */
  readonly isFreeInSandbox?: boolean
  /** `store`: names one store. `account`: concerns the whole account. `own`: concerns the caller only. */
  readonly scope: 'store' | 'account' | 'own'
  /** The table and column that hold the mark of the request afterwards; undefined: the operation reads. */
  readonly trace?: readonly [table: string, column: string]
  body(mark: string, store: Store, ean: string): Record<string, unknown>
}

/** `either`: the documentation leaves it open, or another rule decides. */
export type Verdict = 'must' | 'not' | 'either'

/** Whether the caller may do it now. */
export function verdictOf(doing: Doing, rights: Rights | undefined, store: Store): Verdict {
  if (!rights) return 'not'
  const { kind, role, account } = rights
  if (kind === 'user') {
    if (doing.lowest === undefined || role === undefined || !isAtLeast(role, doing.lowest)) return 'not'
  } else if (!doing.kinds.includes(kind)) return 'not'
  const needsPackage = !(doing.isFreeInSandbox === true && rights.mode === 'test')
  if (needsPackage && !hasPackage(packageOf(account), doing.package)) return 'not'
  const [home] = rights.stores ?? []
  if (kind === 'agent' && needsPackage && home && !hasPackage(home.package, doing.package)) return 'not'
  if (doing.scope === 'own') return 'must'
  if (doing.scope === 'account') return rights.stores === null ? 'must' : 'either'
  if (!sees(rights, store)) return 'not'
  return needsPackage && !hasPackage(store.package, doing.package) ? 'not' : 'must'
}

/** The account has the highest package of its live stores. */
function packageOf({ stores }: Account): Package {
  const live = stores.filter(({ mode }) => mode === 'live').map((store) => PACKAGES.indexOf(store.package))
  return PACKAGES[Math.max(...live)] ?? 'DISCOVER'
}

type Who = readonly [lowest: Role | undefined, ...kinds: Doing['kinds'][number][]]
type More = Partial<Pick<Doing, 'package' | 'isFreeInSandbox' | 'trace'>>

const doing = (
  operation: string,
  [lowest, ...kinds]: Who,
  scope: Doing['scope'],
  body: Doing['body'],
  more?: More,
) => ({
  operation,
  lowest,
  kinds,
  scope,
  body,
  package: 'DISCOVER' as const,
  ...more,
})
const GROW: More = { package: 'GROW', isFreeInSandbox: true }
const ofStore = (_: string, { storeId }: Store) => ({ storeId })

/** Operations that callers try, of each kind of right. */
export const DOINGS: readonly Doing[] = [
  doing('fetchStore', ['viewer', 'secret', 'publishable'], 'store', ofStore),
  doing('fetchStores', ['viewer', 'secret', 'publishable'], 'own', () => ({})),
  doing('fetchUsers', ['manager'], 'own', () => ({})),
  doing('fetchAuditLog', ['admin', 'secret'], 'account', () => ({ limit: 50 })),
  doing('fetchDevices', ['viewer', 'secret'], 'store', ofStore, GROW),
  doing('fetchSignedDocuments', [undefined, 'agent'], 'own', () => ({}), GROW),
  doing(
    'updateStore',
    ['manager', 'secret'],
    'store',
    (mark, { storeId, word }) => ({ storeId, tradingName: `Laden ${word} ${mark}` }),
    { trace: ['store', 'trading_name'] },
  ),
  doing(
    'registerOperator',
    ['manager', 'secret'],
    'store',
    (mark, { storeId, word }) => ({ storeId, name: `Frau ${word} ${mark}` }),
    { ...GROW, trace: ['operator', 'name'] },
  ),
  doing(
    'createZone',
    ['manager', 'secret'],
    'store',
    (mark, { storeId, word }) => ({ storeId, name: `Zone ${word} ${mark}` }),
    { package: 'ASSIST', trace: ['zone', 'name'] },
  ),
  doing(
    'insertProduct',
    ['manager', 'secret'],
    'store',
    (mark, { storeId }, ean) => ({ storeId, ean, name: `Ware ${mark}`, price: 4.99, vat: 19, tagged: false }),
    { trace: ['product', 'name'] },
  ),
  doing('setStock', ['associate', 'secret'], 'store', (_, { storeId, productId }) => ({
    storeId,
    productId,
    quantity: null,
  })),
  doing(
    'createApiKey',
    ['admin', 'secret'],
    'account',
    (mark, { mode }) => ({ kind: mode === 'live' ? 'secret' : 'publishable', name: `Kasse ${mark}` }),
    { trace: ['api_key', 'name'] },
  ),
  doing('registerWebhook', ['admin', 'secret'], 'account', (mark) => ({
    url: `https://hooks.sim/untag/${mark}`,
    events: ['*'],
  })),
  doing('updateProfile', ['viewer'], 'own', (mark) => ({ name: `Frau ${mark}` }), {
    trace: ['console_user', 'name'],
  }),
]

/** Something that people who run the cloud do (docs/guides/platform.md). */
export interface PlatformDoing {
  readonly operation: string
  /** True if merchants may do it for their own account, too. */
  readonly isOfMerchants?: boolean
  /** True if the answer names stores of merchants. */
  readonly namesStores?: boolean
  body(store: Store, chance: Chance): Record<string, unknown>
}

const ofAccount = ({ account: { accountId } }: Store) => ({ accountId })
const withPackage = ({ storeId }: Store, chance: Chance) => ({ storeId, package: chance.one(PACKAGES) })

export const PLATFORM_DOINGS: readonly PlatformDoing[] = [
  { operation: 'fetchAccounts', namesStores: true, body: () => ({}) },
  { operation: 'fetchAccount', namesStores: true, body: ofAccount },
  { operation: 'fetchAccountStores', namesStores: true, body: ofAccount },
  { operation: 'fetchRegistrations', isOfMerchants: true, namesStores: true, body: () => ({}) },
  { operation: 'simulateStorePackage', namesStores: true, body: withPackage },
  { operation: 'setStorePackage', namesStores: true, body: withPackage },
]
