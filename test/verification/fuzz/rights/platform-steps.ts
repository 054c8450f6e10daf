import { ensurePlatformAccount } from '../../../../cloud/platform/accounts/platform-account.ts'
import { PLATFORM_ACCOUNT, PLATFORM_ROLE } from '../../../../cloud/platform/foundation/caller.ts'
import { startSession } from '../../../../cloud/platform/users/sessions.ts'
import { deleteUser } from '../../../../cloud/platform/users/user-queries.ts'
import type { Chance } from '../../simulation/virtual/chance.ts'
import { newOwner } from '../scene/party-users.ts'
import { type RightsStep, isOk, openOnes } from './acts.ts'
import { DOINGS, PLATFORM_DOINGS, type PlatformSession, type Store } from './facts.ts'
import { pick, shown, Violation, type World } from './world.ts'

/** People who run the cloud, and merchants who try what only these may do. */

const OPEN_SESSIONS = 6
/** Operations of merchants that people of the platform may call, too. They concern the people themselves. */
const OF_OWN_ACCOUNT = new Set(['fetchAuditLog', 'fetchUsers'])
const PAGES = ['/registrations', '/accounts', '/audit', '/profile', '/alarms', '/users', '/stores', '/operations']
/** Pages that name merchants' stores by design. */
const NAMING = new Set(['/accounts', '/audit', '/registrations'])

/** A person who runs the cloud signs in, with or without a second factor. */
async function arrive(world: World, chance: Chance, mark: string): Promise<PlatformSession> {
  const { database, platform } = world.served
  const hasFactor = chance.happens(0.6)
  const owner = await newOwner(world.served, { accountId: PLATFORM_ACCOUNT, canary: 'x' })
  const row = {
    ...owner,
    email: `${mark}@platform.example`,
    name: 'Maria',
    role: PLATFORM_ROLE,
    sandbox_only: 0,
    mode: 'live',
  }
  const token = await database.write(async (db) => {
    await ensurePlatformAccount(db, platform.clock.wall())
    await db.insertInto('console_user').values(row).execute()
    const wanted = { state: 'active' as const, hasSecondFactor: hasFactor, mode: 'live' as const, userAgent: 'fuzzer' }
    return (await startSession(db, row, wanted, platform)).sessionToken
  })
  const label = `platform ${mark} ${hasFactor ? 'with' : 'without'} a factor`
  const session: PlatformSession = { label, userId: row.user_id, token, hasFactor, isOpen: true }
  world.platformSessions.push(session)
  return session
}

async function end(world: World, chance: Chance, session: PlatformSession): Promise<string> {
  const how = chance.one(['signOut', 'endSessions', 'untag admins remove'])
  if (how === 'untag admins remove') await world.served.database.write((db) => deleteUser(db, session.userId))
  else {
    const reply = await world.send(world.request(how, {}, session.token))
    if (!isOk(reply)) throw new Violation('refused', `${how} of ${session.label}: ${shown(reply)}`)
  }
  session.isOpen = false
  return how
}

/** The words of all accounts and stores. */
const wordsOf = ({ accounts, stores }: World) => [...accounts, ...stores].map(({ word }) => word)

/** The stores whose package a person may change. */
const liveStore = (world: World, chance: Chance): Store | undefined =>
  pick(
    chance,
    world.stores.filter(({ mode }) => mode === 'live'),
  )

/** Remembers the package that an allowed call gave a store. */
function noteCall(world: World, operation: string, store: Store, body: Record<string, unknown>): void {
  if (operation !== 'setStorePackage') return
  store.package = body['package'] as Store['package']
  world.noteChange(store.account, store.mode, null, store)
}

/** A person calls an operation of the platform, or of merchants. The session sometimes ends on the way. */
async function call(world: World, chance: Chance, mark: string, session: PlatformSession): Promise<string> {
  const store = liveStore(world, chance)
  if (!store) return 'no store is left'
  const own = chance.happens(0.6) ? chance.one(PLATFORM_DOINGS) : undefined
  const doing = chance.one(DOINGS)
  const { operation } = own ?? doing
  const body = own ? own.body(store, chance) : doing.body(mark, store, world.newEan())
  const request = world.request(operation, body, session.token)
  const isLate = session.isOpen && chance.happens(0.3)
  let how = 'nothing ends'
  const meanwhile = async () => void (how = await end(world, chance, session))
  const wasOpen = session.isOpen
  const reply = isLate ? await world.sendHeld(request, 'body', meanwhile) : await world.send(request)
  // Everybody who is signed in may change the own profile. Users and audit log are those of the own account.
  const isForAll = !own && operation === 'updateProfile'
  const isAllowed = isForAll || (session.hasFactor && (own !== undefined || OF_OWN_ACCOUNT.has(operation)))
  const marks = !own && doing.trace ? await world.countMarks(doing.trace, mark) : 0
  const isDone = isOk(reply) || marks > 0
  const what = `${operation} by ${session.label}: ${shown(reply)}`
  if (isDone && !(isAllowed && session.isOpen))
    throw new Violation(wasOpen && !isLate ? 'no-right' : 'ended-right', what)
  if (!isDone && isAllowed && session.isOpen) throw new Violation('refused', what)
  world.assertSecrecy(reply, request, isDone && own?.namesStores === true ? wordsOf(world) : [])
  if (isDone) noteCall(world, operation, store, body)
  world.reach(isDone ? `platform ${operation} done` : 'platform refused')
  if (isLate) world.reach('late platform')
  return `${session.label} calls ${operation}; meanwhile ${how}: ${reply.status}`
}

async function open(world: World, chance: Chance, session: PlatformSession): Promise<string> {
  const path = chance.one(PAGES)
  const request = world.page(session, `/console${path}?mode=${chance.one(['test', 'live'])}`)
  const reply = await world.send(request)
  const isSignIn = reply.text.includes('name="password"') && reply.text.includes('name="email"')
  if (session.isOpen === isSignIn)
    throw new Violation(isSignIn ? 'refused' : 'ended-right', `${path} of ${session.label}: ${shown(reply)}`)
  const maySeeNames = session.isOpen && session.hasFactor && NAMING.has(path)
  world.assertSecrecy(reply, request, maySeeNames ? wordsOf(world) : [])
  return `${session.label} opens ${path}: ${reply.status}`
}

/** A merchant's user, key or agent tries what only people of the platform may do. */
const attempt: RightsStep = async (world, chance) => {
  const list = world[chance.one(['sessions', 'keys', 'agents'] as const)]
  const holder = pick(chance, openOnes<(typeof list)[number]>(list))
  const store = liveStore(world, chance)
  if (!holder || !store) return 'no caller is left'
  const { operation, body } = chance.one(PLATFORM_DOINGS.filter(({ isOfMerchants }) => !isOfMerchants))
  const request = world.request(operation, body(store, chance), await world.tokenOf(holder))
  const reply = await world.send(request)
  const what = `${operation} by ${holder.label}: ${shown(reply)}`
  if (isOk(reply)) throw new Violation('no-right', what)
  world.assertSecrecy(reply, request, [])
  world.reach('platform operation refused to a merchant')
  return `${holder.label} tries ${operation}: ${reply.status}`
}

/** What people of the platform do, and what merchants may not do in their place. */
export const platform: RightsStep = async (world, chance, mark) => {
  if (chance.happens(0.3)) return attempt(world, chance, mark)
  if (openOnes(world.platformSessions).length < OPEN_SESSIONS && chance.happens(0.4))
    return `begins ${(await arrive(world, chance, mark)).label}`
  const sessions = chance.happens(0.8) ? openOnes(world.platformSessions) : world.platformSessions
  const session = pick(chance, sessions)
  if (!session) return 'no person of the platform is signed in'
  if (session.isOpen && chance.happens(0.1)) return `${session.label} ends: ${await end(world, chance, session)}`
  return chance.happens(0.25) ? open(world, chance, session) : call(world, chance, mark, session)
}
