import { deleteUser } from '../../../../cloud/platform/users/user-queries.ts'
import type { Chance } from '../../simulation/virtual/chance.ts'
import { type HttpReply, type HttpRequest } from '../scene/served-cloud.ts'
import {
  covers,
  DOINGS,
  isAtLeast,
  mayUseLive,
  MODES,
  rightsOf,
  ROLES,
  sees,
  verdictOf,
  type Doing,
  type Holder,
  type Key,
  type Rights,
  type Session,
  type Store,
  type User,
} from './facts.ts'
import { pick, shown, SLOW_TILL, Violation, type World } from './world.ts'

/** A step: draws what it does, does it, and judges the answers. Returns what it did, for a reader. */
export type RightsStep = (world: World, chance: Chance, mark: string) => Promise<string>

export const isOk = ({ status }: HttpReply) => status >= 200 && status < 300

/** A session, usually an open one. */
export const someone = ({ sessions }: World, chance: Chance) =>
  pick(chance, chance.happens(0.75) ? openOnes(sessions) : sessions)

export const openOnes = <T extends { readonly isOpen: boolean }>(list: readonly T[]) =>
  list.filter(({ isOpen }) => isOpen)

const holdersOf = (world: World): Holder[] => [...world.sessions, ...world.keys, ...world.agents]

const SYNC: Doing = {
  operation: 'syncPOS',
  lowest: 'manager',
  kinds: ['secret'],
  package: 'GO',
  scope: 'store',
  trace: ['product', 'name'],
  body: (mark, { storeId }) => ({ system: 'generic', storeId, credentials: { baseUrl: SLOW_TILL, token: mark } }),
}

/** Words of the stores and of the account that an answer may contain. */
export function wordsFor(rights: Rights | undefined, stores: readonly Store[]): string[] {
  return rights ? [rights.account.word, ...stores.filter((store) => sees(rights, store)).map(({ word }) => word)] : []
}

/** Judges the answer to one operation. `before` and `after`: the rights when it was sent, and when its body arrived. */
async function judge(
  world: World,
  { doing, store, mark }: { doing: Doing; store: Store; mark: string },
  { before, after }: { before: Rights | undefined; after: Rights | undefined },
  { request, reply }: { request: HttpRequest; reply: HttpReply },
): Promise<void> {
  const verdicts = [before, after].map((rights) => verdictOf(doing, rights, store))
  const marks = doing.trace ? await world.countMarks(doing.trace, mark) : 0
  const isDone = isOk(reply) || marks > 0
  const what = `${doing.operation}: ${shown(reply)}${marks > 0 ? ', and the change is stored' : ''}`
  if (isDone && verdicts.includes('not')) throw new Violation(before === after ? 'no-right' : 'ended-right', what)
  if (!isDone && before === after && verdicts[0] === 'must') throw new Violation('refused', what)
  world.assertSecrecy(reply, request, wordsFor(after, world.stores))
  world.reach(isDone ? `${doing.operation} done` : 'refused')
  if (!isDone || !after) return
  world.noteChange(after.account, after.mode, after.stores, store)
  if (doing.operation !== 'createApiKey') return
  const { key, keyId } = reply.json as { key: string; keyId: string }
  const { kind } = doing.body(mark, store, '') as { kind: Key['kind'] }
  const { account, mode, stores } = after
  world.keys.push({ label: `key ${mark}`, kind, account, mode, stores, token: key, keyId, isOpen: true })
}

/** A caller, something to do, and a store. Often one that the caller may do. */
function choose(world: World, chance: Chance, isAble: boolean) {
  const everyone: readonly Holder[] =
    world[chance.one(['sessions', 'sessions', 'sessions', 'keys', 'keys', 'agents'] as const)]
  const holder = pick(chance, isAble || chance.happens(0.8) ? openOnes(everyone) : everyone)
  const rights = holder && rightsOf(holder)
  const near = rights && chance.happens(0.7) ? world.stores.filter((store) => sees(rights, store)) : world.stores
  const store = pick(chance, near)
  if (!holder || !store) return undefined
  const able = DOINGS.filter((each) => verdictOf(each, rights, store) === 'must')
  const doing = chance.one(able.length > 0 && (isAble || chance.happens(0.5)) ? able : DOINGS)
  return { holder, store, doing, rights }
}

export const call: RightsStep = async (world, chance, mark) => {
  const chosen = choose(world, chance, false)
  if (!chosen) return 'no caller is left'
  const { holder, store, doing, rights } = chosen
  const request = world.request(doing.operation, doing.body(mark, store, world.newEan()), await world.tokenOf(holder))
  const reply = await world.send(request)
  await judge(world, { doing, store, mark }, { before: rights, after: rights }, { request, reply })
  return `${holder.label} calls ${doing.operation} for ${store.label}: ${reply.status}`
}

/** A right ends while the request is on its way. */
export const late: RightsStep = async (world, chance, mark) => {
  const chosen = choose(world, chance, true)
  if (!chosen) return 'no caller is left'
  const { holder, store } = chosen
  const isSync = chance.happens(0.4) && verdictOf(SYNC, chosen.rights, store) === 'must' && store.mode === 'live'
  const doing = isSync ? SYNC : chosen.doing
  const request = world.request(doing.operation, doing.body(mark, store, world.newEan()), await world.tokenOf(holder))
  const before = rightsOf(holder)
  let how = 'nothing ends'
  const isEnding = chance.happens(0.9)
  const meanwhile = async () => void (how = isEnding ? await endRight(world, chance, holder) : how)
  const reply = await world.sendHeld(request, isSync ? 'system' : 'body', meanwhile)
  await judge(world, { doing, store, mark }, { before, after: rightsOf(holder) }, { request, reply })
  world.reach(`late ${holder.kind}`)
  return `${holder.label} sends ${doing.operation} for ${store.label}; meanwhile ${how}: ${reply.status}`
}

const ENDS = ['removeUser', 'updateUser', 'updateUser', 'endSessions', 'endSessions', 'signOut', 'untag users remove']

/** Ends the right of a caller, as a user or key that may end it. */
export async function endRight(world: World, chance: Chance, holder: Holder): Promise<string> {
  await world.checkStreams()
  if (holder.kind === 'agent') {
    const { account, mode } = holder.store
    // Agents belong to GROW.
    if (mode === 'live') await world.setPackage(holder.store, 'PRIME')
    await world.root(account, mode, 'revokeAgent', { agentId: holder.identity.agentId })
    holder.isOpen = false
    await world.replaceAgent(holder)
    return 'revokeAgent'
  }
  if (holder.kind !== 'user') {
    await world.root(holder.account, holder.mode, 'revokeApiKey', { keyId: holder.keyId })
    holder.isOpen = false
    return 'revokeApiKey'
  }
  const { user } = holder
  const { database } = world.served
  const isRoot = user.email.startsWith('root@')
  const how = chance.one(isRoot ? ['signOut', 'endSessions'] : ENDS)
  if (how === 'untag users remove') await database.write((db) => deleteUser(db, user.userId))
  else await asRoot(world, how, holder, chance)
  if (how === 'signOut') holder.isOpen = false
  else world.endSessionsOf(user)
  if (how.includes('emove')) user.isGone = true
  return how
}

async function asRoot(world: World, how: string, holder: Session, chance: Chance): Promise<void> {
  const { user } = holder
  const isOwn = how === 'signOut' || how === 'endSessions'
  const by = isOwn ? holder : await world.rootSession(user.account)
  const role = chance.one(ROLES.slice(0, 4))
  const body = isOwn ? {} : { userId: user.userId, ...(how === 'updateUser' && { role, storeIds: null }) }
  const reply = await world.send(world.request(how, body, by.token))
  if (reply.status !== 200) throw new Violation('refused', `${how}: ${shown(reply)}`)
  if (how !== 'updateUser') return
  Object.assign(user, { role, stores: null })
  for (const link of world.links) if (link.user === user) link.inviter = by.user
}

export const end: RightsStep = async (world, chance) => {
  // Links must end with the right of their inviter.
  const inviters = new Set(openOnes(world.links).map(({ inviter }) => inviter))
  const ofInviters = world.sessions.filter(({ user, isOpen }) => isOpen && inviters.has(user))
  const holder = pick(chance, ofInviters.length > 0 && chance.happens(0.4) ? ofInviters : openOnes(holdersOf(world)))
  return holder ? `${holder.label} ends: ${await endRight(world, chance, holder)}` : 'nothing ends'
}

/** Users give and take only rights that they have. */
export const isAtLeastOf =
  (own: Rights | undefined) =>
  (
    target: Pick<User, 'account' | 'role' | 'stores' | 'isSandboxOnly'> & { userId?: string },
    by: Session,
    isSelf = true,
  ) =>
    own?.role !== undefined &&
    own.account === target.account &&
    isAtLeast(own.role, 'manager') &&
    isAtLeast(own.role, target.role) &&
    (mayUseLive(by) || target.isSandboxOnly) &&
    ((isSelf && target.userId === by.user.userId) || covers(own.stores, target.stores))

/** The first store of each mode. */
export const sideBySide = (stores: readonly Store[]): Store[] =>
  MODES.flatMap((mode) => stores.find((store) => store.mode === mode) ?? [])

/** A user changes or removes another one, with or without the right. */
export const manage: RightsStep = async (world, chance) => {
  const by = someone(world, chance)
  const others = world.users.filter((user) => !user.isGone && !user.email.startsWith('root@'))
  const own = others.filter(({ account }) => account === by?.user.account)
  const target = pick(chance, chance.happens(0.8) ? own : others)
  if (!by || !target) return 'no user may be changed'
  const isRemoval = chance.happens(0.3)
  const role = chance.one(ROLES)
  const isSandboxOnly = chance.happens(0.3)
  const stores = role === 'owner' || chance.happens(0.6) ? null : sideBySide(target.account.stores)
  const storeIds = stores?.map(({ storeId }) => storeId) ?? null
  const body = { userId: target.userId, ...(!isRemoval && { role, storeIds, sandboxOnly: isSandboxOnly }) }
  const [has, wants] = [isAtLeastOf(rightsOf(by)), { role, stores, isSandboxOnly }]
  const may = has(target, by) && (isRemoval || has({ ...target, ...wants }, by, false))
  await world.checkStreams()
  const operation = isRemoval ? 'removeUser' : 'updateUser'
  const reply = await world.send(world.request(operation, body, by.token))
  if (isOk(reply) && !may) throw new Violation('no-right', `${operation} by ${by.label}: ${shown(reply)}`)
  if (isOk(reply)) {
    world.endSessionsOf(target)
    if (isRemoval) target.isGone = true
    else Object.assign(target, wants)
    for (const link of world.links) if (link.user === target) link.inviter = by.user
  }
  return `${by.label} calls ${operation} for ${target.email} of ${target.account.label}: ${reply.status}`
}
